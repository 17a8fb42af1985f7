// Writes the nodes of a Chakra trace. The schema's nodes need only three kinds of protobuf fields, which is
// less code than a generated reader and writer.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace medley::trace {

class ChakraNodes {
 public:
  enum Kind { computation = 4, send = 5, receive = 6, collective = 7 };

  explicit ChakraNodes(std::ostream& out) : out_(out) {
    std::string metadata;
    put_text(metadata, 1, "0.0.4");
    put_message(metadata);
  }

  /// Starts a node; attributes follow, then end(). Returns its number.
  std::uint64_t begin(std::string_view name, Kind kind, double start_ns, double duration_ns,
                      const std::vector<std::uint64_t>& after) {
    node_.clear();
    put_number(node_, 1, ++last_);
    put_text(node_, 2, name);
    put_number(node_, 3, kind);
    std::string list;
    for (const std::uint64_t id : after) put_varint(list, id);
    if (!list.empty()) put_text(node_, 5, list);  // data_deps, packed
    put_number(node_, 6, static_cast<std::uint64_t>(start_ns / 1e3));
    put_number(node_, 7, static_cast<std::uint64_t>(duration_ns / 1e3 + 0.5));
    return last_;
  }
  void attribute(std::string_view name, std::int64_t value) {
    put_attribute(name, [&](std::string& to) { put_number(to, 9, static_cast<std::uint64_t>(value)); });
  }
  void attribute(std::string_view name, bool value) {
    put_attribute(name, [&](std::string& to) { put_number(to, 27, value); });
  }
  void attribute(std::string_view name, const std::string& value) {
    put_attribute(name, [&](std::string& to) { put_text(to, 29, value); });
  }
  void end() { put_message(node_); }

 private:
  static void put_varint(std::string& to, std::uint64_t value) {
    for (; value >= 128; value >>= 7) to += static_cast<char>(value | 128);
    to += static_cast<char>(value);
  }
  static void put_number(std::string& to, std::uint64_t field, std::uint64_t value) {
    put_varint(to, field << 3);
    put_varint(to, value);
  }
  static void put_text(std::string& to, std::uint64_t field, std::string_view text) {
    put_varint(to, field << 3 | 2);
    put_varint(to, text.size());
    to += text;
  }
  template <typename Value>
  void put_attribute(std::string_view name, const Value& value) {
    std::string attribute;
    put_text(attribute, 1, name);
    value(attribute);
    put_text(node_, 10, attribute);
  }
  void put_message(const std::string& message) {
    std::string length;
    put_varint(length, message.size());
    out_ << length << message;
  }

  std::ostream& out_;
  std::string node_;
  std::uint64_t last_ = 0;
};

}  // namespace medley::trace
