#include "cli/bench_ranks.hpp"

#include <fmt/format.h>

#include "cli/sizes.hpp"

namespace medley::cli {

std::vector<Op> ops_of(const std::string& text) {
  std::vector<Op> ops;
  for (const std::string& word : parse_list(text)) {
    if (word == "all") {
      for (int i = 0; i < op_count; ++i) {
        if (static_cast<Op>(i) != Op::recv) ops.push_back(static_cast<Op>(i));
      }
      continue;
    }
    const auto op = parse_op(word);
    if (!op) throw Error(ErrorKind::invalid, fmt::format("\"{}\" is not an operation; see medley info", word));
    ops.push_back(*op);
  }
  if (ops.empty()) throw Error(ErrorKind::invalid, "--op lists no operation");
  return ops;
}

DType dtype_of_word(const std::string& word) {
  const auto dtype = parse_dtype(word);
  if (!dtype) throw Error(ErrorKind::invalid, fmt::format("\"{}\" is not an element type; see medley info", word));
  return *dtype;
}

void add_memory(CLI::App& command, std::string& word) {
  command.add_option("--memory", word, "where buffers lie; cuda: on the devices of each host, which its ranks take in turn")
      ->check(CLI::IsMember({"host", "cuda"}))
      ->capture_default_str();
}

Memory memory_of_word(const std::string& word) {
  if (word != "cuda") return Memory::host;
  if (const std::string why = why_no_device(); !why.empty()) {
    throw Error(ErrorKind::invalid, fmt::format("--memory cuda: CUDA memory cannot be used here: {}", why));
  }
  return Memory::cuda;
}

}  // namespace medley::cli
