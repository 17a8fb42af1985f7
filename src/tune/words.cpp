#include "tune/words.hpp"

#include <fmt/format.h>

#include <medley/error.hpp>
#include <medley/sdk/device.hpp>

#include "base/closest.hpp"
#include "base/split.hpp"
#include "route/sizes.hpp"

namespace medley::tune {

Op op_of_word(const std::string& word) {
  const auto op = parse_op(word);
  if (op) return *op;
  std::vector<std::string_view> names;
  for (int i = 0; i < op_count; ++i) names.push_back(name(static_cast<Op>(i)));
  throw Error(ErrorKind::invalid,
              fmt::format("\"{}\" is not an operation; see medley list ops{}", word, did_you_mean(word, names)));
}

std::vector<Op> ops_of(const std::string& text) {
  std::vector<Op> ops;
  for (const std::string& word : split(text, ',')) {
    if (word != "all") {
      ops.push_back(op_of_word(word));
      continue;
    }
    for (int i = 0; i < op_count; ++i) {
      if (static_cast<Op>(i) != Op::recv) ops.push_back(static_cast<Op>(i));
    }
  }
  if (ops.empty()) throw Error(ErrorKind::invalid, "--op lists no operation");
  return ops;
}

DType dtype_of_word(const std::string& word) {
  const auto dtype = parse_dtype(word);
  if (!dtype) throw Error(ErrorKind::invalid, fmt::format("\"{}\" is not an element type; see medley info", word));
  return *dtype;
}

Memory memory_of_word(const std::string& word) {
  if (word == "host") return Memory::host;
  if (word != "cuda") throw Error(ErrorKind::invalid, fmt::format("\"{}\" is not a memory: it is host or cuda", word));
  if (const std::string why = why_no_device(); !why.empty()) {
    throw Error(ErrorKind::invalid, fmt::format("--memory cuda: CUDA memory cannot be used here: {}", why));
  }
  return Memory::cuda;
}

std::size_t parse_size(const std::string& text) {
  const auto bytes = route::read_size(text);
  if (!bytes) throw Error(ErrorKind::invalid, fmt::format("\"{}\" is not a size; write it as 4, 64K, 1M or 2G", text));
  return static_cast<std::size_t>(*bytes);
}

std::pair<std::size_t, std::size_t> parse_size_range(const std::string& text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) return {parse_size(text), parse_size(text)};
  const std::size_t first = parse_size(text.substr(0, colon)), last = parse_size(text.substr(colon + 1));
  if (first > last) throw Error(ErrorKind::invalid, fmt::format("the sizes {} run backwards", text));
  return {first, last};
}

}  // namespace medley::tune
