#include <medley/rules.hpp>

#include <fmt/format.h>

#include <medley/error.hpp>

#include "compress/spec.hpp"
#include "route/sizes.hpp"

namespace medley {
namespace {

std::string_view trim(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

/// Returns the text before the mark and leaves the text after it; returns everything if there is no mark.
std::string_view take(std::string_view& text, char mark, bool& found) {
  const std::size_t at = text.find(mark);
  found = at != std::string_view::npos;
  const std::string_view first = trim(text.substr(0, at));
  text = found ? trim(text.substr(at + 1)) : std::string_view{};
  return first;
}

[[noreturn]] void refuse(std::string_view rule, const std::string& why) {
  throw Error(ErrorKind::invalid,
              fmt::format("rule \"{}\": {}; write OP[:FROM-TO][@MEMORY]=BACKEND[/ALGORITHM], such as "
                          "all_reduce:0-4K=shm, or BACKEND+CODEC, such as all_reduce:1M-=mpi+int8",
                          rule, why));
}

std::int64_t size_in(std::string_view rule, std::string_view text, std::int64_t otherwise) {
  if (text.empty()) return otherwise;
  const std::optional<std::int64_t> bytes = route::read_size(text);
  if (!bytes) refuse(rule, fmt::format("\"{}\" is not a size", text));
  return *bytes;
}

/// Splits BACKEND+CODEC, or auto+CODECS. The codec becomes the algorithm, in its canonical spelling, with the plus sign
/// in front.
void take_codec(std::string_view rule, Choice& choice) {
  constexpr std::string_view automatic = "auto+";
  const bool permits = choice.backend.starts_with(automatic);
  const std::size_t at = permits ? automatic.size() - 1 : compress::find_codec(choice.backend);
  if (at == std::string::npos) return;
  if (!choice.algorithm.empty()) refuse(rule, "a compressed operation has no other algorithm");
  const std::string codec = choice.backend.substr(at + 1);
  choice.backend.resize(at);
  try {
    choice.algorithm =
        compress::mark + (permits ? compress::Permission::parse(codec).text() : compress::parse_spec(codec).text());
  } catch (const Error& error) {
    refuse(rule, error.what());
  }
}

bool is_message(std::optional<Op> op) { return op == Op::send || op == Op::recv; }

Rules::Rule parse_rule(std::string_view whole) {
  Rules::Rule rule;
  bool has_choice = false, has_memory = false, has_range = false, has_algorithm = false;
  std::string_view choice = whole;
  std::string_view what = take(choice, '=', has_choice);
  if (!has_choice) refuse(whole, "it names no backend");
  rule.choice.backend = take(choice, '/', has_algorithm);
  rule.choice.algorithm = choice;
  if (rule.choice.backend.empty()) refuse(whole, "it names no backend");
  if (has_algorithm && rule.choice.algorithm.empty()) refuse(whole, "it names no algorithm behind the slash");
  if (compress::is_compressed(rule.choice.algorithm)) refuse(whole, "an algorithm does not begin with a plus sign");
  take_codec(whole, rule.choice);

  std::string_view memory = what;
  what = take(memory, '@', has_memory);
  if (memory == "host") rule.memory = Memory::host;
  if (memory == "cuda") rule.memory = Memory::cuda;
  if (has_memory && !rule.memory) refuse(whole, fmt::format("\"{}\" is neither host nor cuda", memory));

  std::string_view range = what;
  what = take(range, ':', has_range);
  if (what != "*") {
    rule.op = what == "p2p" ? Op::send : parse_op(what);
    if (!rule.op) refuse(whole, fmt::format("\"{}\" is not an operation", what));
    if (is_message(rule.op)) rule.op = Op::send;
  }
  if (!has_range) return rule;
  bool has_dash = false;
  std::string_view to = range;
  const std::string_view from = take(to, '-', has_dash);
  if (!has_dash) refuse(whole, fmt::format("\"{}\" is not a range FROM-TO", range));
  rule.from = size_in(whole, from, 0);
  rule.to = size_in(whole, to, INT64_MAX);
  if (rule.from > rule.to) refuse(whole, fmt::format("{} is more than {}", from, to));
  return rule;
}

}  // namespace

bool Rules::Rule::fits(Op what, Memory where, bool exact) const noexcept {
  if (memory && *memory != where) return false;
  if (is_message(what) && sized() && !exact) return false;
  return !op || *op == what || (is_message(op) && is_message(what));
}

Rules Rules::parse(std::string_view text) {
  Rules rules;
  while (!trim(text).empty()) {
    bool more = false;
    const std::string_view rule = take(text, ';', more);
    if (!rule.empty()) rules.rules_.push_back(parse_rule(rule));
  }
  return rules;
}

const Choice* Rules::choose(Op op, std::int64_t bytes, Memory memory, bool exact) const noexcept {
  for (const Rule& rule : rules_) {
    if (rule.choice.backend != "auto" && rule.fits(op, memory, exact) && bytes >= rule.from && bytes <= rule.to)
      return &rule.choice;
  }
  return nullptr;
}

std::string Rules::text() const {
  std::string text;
  for (const Rule& rule : rules_) {
    if (!text.empty()) text += ';';
    text += rule.op ? name(*rule.op) : std::string_view("*");
    if (rule.sized()) text += fmt::format(":{}-{}", rule.from, rule.to == INT64_MAX ? "" : std::to_string(rule.to));
    if (rule.memory) text += fmt::format("@{}", name(*rule.memory));
    text += '=' + rule.choice.backend;
    if (rule.choice.algorithm.empty()) continue;
    if (!compress::is_compressed(rule.choice.algorithm)) text += '/';
    text += rule.choice.algorithm;
  }
  return text;
}

}  // namespace medley
