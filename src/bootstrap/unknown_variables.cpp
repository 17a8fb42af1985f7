#include "bootstrap/unknown_variables.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <medley/error.hpp>
#include <mutex>
#include <string_view>

#include "base/closest.hpp"
#include "bootstrap/environment.hpp"

namespace medley {
namespace embedded {
extern const std::string_view variables_txt;
}
namespace {

constexpr std::string_view prefix = "MEDLEY_";

/// What follows the prefix in names, such as RANK; TEST_* stands for all that begin with TEST_.
struct KnownVariables {
  std::vector<std::string_view> read;       ///< by Medley
  std::vector<std::string_view> of_others;  ///< and of tests: nobody means one of these
};

KnownVariables known_variables() {
  KnownVariables known;
  std::vector<std::string_view>* group = &known.read;
  std::string_view rest = embedded::variables_txt;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (line.starts_with("== ")) group = line.starts_with("== Of ") ? &known.of_others : &known.read;
    std::string_view names = line.substr(0, line.find(": "));
    while (names.starts_with(prefix)) {
      const std::string_view name = names.substr(0, names.find(", "));
      names.remove_prefix(std::min(names.size(), name.size() + 2));
      group->push_back(name.substr(prefix.size()));
    }
  }
  return known;
}

bool matches(std::string_view name, std::string_view known) {
  return known.ends_with('*') ? name.starts_with(known.substr(0, known.size() - 1)) : name == known;
}

/// Whether this is the process of its job that speaks for all.
bool speaks_for_the_job() {
  const Environment variable = process_environment();
  if (variable("MEDLEY_STORE_SERVED")) return false;  // `medley run` has spoken
  try {
    const auto place = find_place(variable);
    return !place || place->rank == 0;
  } catch (const Error&) {  // whoever needs the place says what is wrong with it
    return true;
  }
}

}  // namespace

std::vector<std::string> about_unknown_variables(const std::vector<std::string>& names) {
  const KnownVariables known = known_variables();
  std::vector<std::string> sentences;
  for (const std::string& name : names) {
    if (!name.starts_with(prefix)) continue;
    const std::string_view own = std::string_view(name).substr(prefix.size());
    // Nobody means one of Medley's by another name, and it may hold anything, such as a terminal's commands.
    if (own.empty() || own.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != own.npos) continue;
    const auto is_own = [&](std::string_view each) { return matches(own, each); };
    if (std::any_of(known.read.begin(), known.read.end(), is_own) ||
        std::any_of(known.of_others.begin(), known.of_others.end(), is_own))
      continue;
    // Without the prefix, which would make any two short names look alike.
    const std::string nearest = closest(own, known.read);
    sentences.push_back(nearest.empty() ? fmt::format("{} is not known; see medley help environment", name)
                                        : fmt::format("{} is not known; did you mean {}{}?", name, prefix, nearest));
  }
  std::sort(sentences.begin(), sentences.end());
  return sentences;
}

void warn_of_unknown_variables() {
  static std::once_flag once;
  std::call_once(once, [] {
    std::vector<std::string> names;
    for (char** each = environ; each && *each; ++each) {
      const std::string_view entry = *each;
      if (entry.starts_with(prefix)) names.emplace_back(entry.substr(0, entry.find('=')));
    }
    if (names.empty() || !speaks_for_the_job()) return;
    for (const std::string& sentence : about_unknown_variables(names)) fmt::print(stderr, "medley: {}\n", sentence);
  });
}

}  // namespace medley
