// The table of families (families.txt), parsed on first use: assignments in order, parents' first. Used by
// families.cpp, which evaluates them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace medley::model {

/// [key], [!key], [key:yes], [key=text] of the table.
struct Condition {
  std::string key, text;  ///< text: compared with it unless empty
  bool negated = false, when_missing = false;
};

struct Assignment {
  std::vector<Condition> conditions;  ///< none: always applies
  std::string field, source;
};

struct Family {
  std::string name;
  std::vector<Assignment> assignments;
};

/// Every family under each of its names, in table order; `base` is not included.
const std::vector<Family>& families();
const Family* find_family(std::string_view name);

}  // namespace medley::model
