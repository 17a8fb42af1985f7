// Checked reading of JSON from other programs: finds every field, checks its type, and reports errors with their path.
// The readers of this module copy fields through it, so that the page can rely on their types.
#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace medley::report {

using Json = nlohmann::ordered_json;

enum class Type {
  text,
  amount,  ///< a finite number, not negative
  number,  ///< a finite number
  boolean,
  texts,    ///< a list of texts
  amounts,  ///< an object whose values are amounts
};

struct Field {
  const char* key;
  Type type;
  bool optional = false;  ///< missing or null: null is copied
};

/// A value with the path to it, such as rows[3].median_us. The value must outlive it.
class Node {
 public:
  explicit Node(const Json& value, std::string path = "") : value_(&value), path_(std::move(path)) {}

  Node at(const char* key) const;
  /// The elements of the list under `key`.
  std::vector<Node> list(const char* key) const;
  /// A new object with these fields, each checked.
  Json pick(std::initializer_list<Field> fields) const;
  std::string text(const char* key) const { return at(key).checked(Type::text).get<std::string>(); }
  double amount(const char* key) const { return at(key).checked(Type::amount).get<double>(); }
  bool has(const char* key) const;

  const Json& whole() const { return *value_; }
  /// The value, if it has this type; throws Error(invalid) otherwise.
  const Json& checked(Type type) const;
  [[noreturn]] void refuse(const std::string& why) const;

 private:
  const Json* value_;
  std::string path_;
};

}  // namespace medley::report
