#include "report/fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <medley/error.hpp>

namespace medley::report {
namespace {

constexpr std::size_t longest_text = 4096;

const char* words(Type type) {
  switch (type) {
    case Type::text: return "a text";
    case Type::amount: return "a number that is not negative";
    case Type::number: return "a number";
    case Type::boolean: return "true or false";
    case Type::texts: return "a list of texts";
    case Type::amounts: return "an object of numbers that are not negative";
  }
  return "";
}

bool is_text(const Json& value) {
  return value.is_string() && value.get_ref<const std::string&>().size() <= longest_text;
}
bool is_number(const Json& value) { return value.is_number() && std::isfinite(value.get<double>()); }
bool is_amount(const Json& value) { return is_number(value) && value.get<double>() >= 0; }

bool has_type(const Json& value, Type type) {
  switch (type) {
    case Type::text: return is_text(value);
    case Type::amount: return is_amount(value);
    case Type::number: return is_number(value);
    case Type::boolean: return value.is_boolean();
    case Type::texts: return value.is_array() && std::all_of(value.begin(), value.end(), is_text);
    case Type::amounts: return value.is_object() && std::all_of(value.begin(), value.end(), is_amount);
  }
  return false;
}

}  // namespace

void Node::refuse(const std::string& why) const {
  throw Error(ErrorKind::invalid, path_.empty() ? why : fmt::format("{} {}", path_, why));
}

bool Node::has(const char* key) const {
  return value_->is_object() && value_->contains(key) && !(*value_)[key].is_null();
}

Node Node::at(const char* key) const {
  if (!value_->is_object()) refuse("is not an object");
  const auto found = value_->find(key);
  const std::string path = path_.empty() ? key : path_ + "." + key;
  if (found == value_->end()) throw Error(ErrorKind::invalid, path + " is missing");
  return Node(*found, path);
}

std::vector<Node> Node::list(const char* key) const {
  const Node node = at(key);
  if (!node.value_->is_array()) node.refuse("is not a list");
  std::vector<Node> out;
  for (std::size_t i = 0; i < node.value_->size(); ++i)
    out.emplace_back((*node.value_)[i], fmt::format("{}[{}]", node.path_, i));
  return out;
}

const Json& Node::checked(Type type) const {
  if (!has_type(*value_, type)) refuse(fmt::format("is not {}", words(type)));
  return *value_;
}

Json Node::pick(std::initializer_list<Field> fields) const {
  Json out = Json::object();
  for (const Field& field : fields)
    out[field.key] = field.optional && !has(field.key) ? Json() : at(field.key).checked(field.type);
  return out;
}

}  // namespace medley::report
