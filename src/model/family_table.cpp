#include "model/family_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <medley/error.hpp>
#include <sstream>

#include "model/text.hpp"

namespace medley::model {
namespace {

constexpr const char* family_text =
#include "families.inc"
    ;

Condition condition_of(std::string text) {
  Condition c;
  if (text.starts_with('!')) c.negated = true, text.erase(0, 1);
  if (const auto colon = text.find(':'); colon != std::string::npos) {
    c.when_missing = text.substr(colon + 1) == "yes";
    text.resize(colon);
  }
  if (const auto equals = text.find('='); equals != std::string::npos) {
    c.text = text.substr(equals + 1);
    text.resize(equals);
  }
  c.key = text;
  return c;
}

[[noreturn]] void broken(const std::string& line) {
  throw Error(ErrorKind::invalid, fmt::format("families.txt: cannot read '{}'", line));
}

std::vector<Family> parse_families() {
  std::vector<Family> all;
  std::size_t first = 0;  // of the names that the current lines apply to
  std::istringstream lines(family_text);
  for (std::string line; std::getline(lines, line);) {
    if (trimmed(line).empty() || line[0] == '#') continue;
    if (line[0] != ' ') {
      const auto colon = line.find(':');
      if (colon == std::string::npos) broken(line);
      const std::string parent = trimmed(line.substr(colon + 1));
      const auto known = std::ranges::find(all, parent, &Family::name);
      if (!parent.empty() && known == all.end()) broken(line);
      const std::vector<Assignment> inherited = parent.empty() ? std::vector<Assignment>{} : known->assignments;
      first = all.size();
      for (const std::string& name : split(line.substr(0, colon), ',')) all.push_back({trimmed(name), inherited});
      continue;
    }
    std::vector<Condition> conditions;
    std::istringstream words(line);
    for (std::string word; words >> word;) {
      if (word.starts_with('[') && word.ends_with(']')) {
        conditions.push_back(condition_of(word.substr(1, word.size() - 2)));
        continue;
      }
      const auto equals = word.find('=');
      if (equals == std::string::npos || first == all.size()) broken(line);
      for (std::size_t i = first; i < all.size(); ++i)
        all[i].assignments.push_back({conditions, word.substr(0, equals), word.substr(equals + 1)});
    }
  }
  std::erase_if(all, [](const Family& family) { return family.name == "base"; });
  return all;
}

}  // namespace

const std::vector<Family>& families() {
  static const std::vector<Family> all = parse_families();
  return all;
}

const Family* find_family(std::string_view name) {
  const auto found = std::ranges::find(families(), name, &Family::name);
  return found == families().end() ? nullptr : &*found;
}

}  // namespace medley::model
