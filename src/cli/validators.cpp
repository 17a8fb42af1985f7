// Checks of what a user typed, each refusing it with a sentence that names the value and what would be right.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <medley/error.hpp>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/split.hpp"
#include "cli/command.hpp"
#include "comm/backend_loader.hpp"

namespace medley::cli {
namespace {

/// Insertions, deletions and replacements that lead from one word to the other.
std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j] + 1, row[j + 1] + 1, replaced});
    }
  }
  return row.back();
}

bool is_known(const std::string& backend) {
  if (backend == "auto") return true;
  const auto parts = split(backend, '+');   // a pair such as shm+mpi
  return !parts.empty() && parts.size() <= 2 &&
         std::all_of(parts.begin(), parts.end(), [](const std::string& part) { return core::find_backend(part) != nullptr; });
}

}  // namespace

CLI::Validator positive() {
  return CLI::Validator(
      [](const std::string& text) {
        char* end = nullptr;
        const double value = std::strtod(text.c_str(), &end);
        const bool right = end != text.c_str() && *end == '\0' && value > 0;
        return right ? std::string() : fmt::format("\"{}\" is not a number above 0", text);
      },
      "POSITIVE");
}

CLI::Validator known_backends() {
  return CLI::Validator(
      [](const std::string& text) {
        const bool parse_only = std::getenv("MEDLEY_PARSE_ONLY");   // documents name plugins that are not here
        for (const std::string& backend : split(text, ',')) {
          if (parse_only || is_known(backend)) continue;
          std::vector<std::string> names;
          for (const auto& known : core::known_backends()) names.push_back(known->name());
          return fmt::format("\"{}\" is not a backend; there are {}", backend, fmt::join(names, ", "));
        }
        return std::string();
      },
      "");
}

void check_command(const CLI::App& app, const std::vector<std::string>& words) {
  if (words.empty() || words.front().starts_with("-")) return;
  std::string nearest;
  std::size_t least = SIZE_MAX;   // twice the distance; among equals the one with the same first letter
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_name() == words.front()) return;
    const std::string name = command->get_name();
    const std::size_t here = 2 * edit_distance(words.front(), name) + (words.front().starts_with(name.front()) ? 0 : 1);
    if (here < least) nearest = name, least = here;
  }
  throw Error(ErrorKind::invalid, fmt::format("\"{}\" is not a command{}; see medley --help", words.front(),
                                              least <= 5 ? fmt::format("; did you mean {}?", nearest) : ""));
}

}  // namespace medley::cli
