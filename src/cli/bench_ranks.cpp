#include "cli/bench_ranks.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>

#include "bootstrap/binding.hpp"
#include "bootstrap/host.hpp"
#include "cli/sizes.hpp"
#include "comm/plugins.hpp"
#include "device/rank_device.hpp"
#include "tune/placement.hpp"

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

ContextOptions context_for(std::vector<std::string> backends, Memory memory) {
  ContextOptions options;
  options.backends = std::move(backends);
  options.hierarchical = options.backends.empty();
  if (memory == Memory::host) return options;
  try {
    options.device = core::rank_device().index;
  } catch (const Error& error) {
    throw Error(ErrorKind::invalid, fmt::format("--memory cuda: {}", error.what()));
  }
  if (options.backends == std::vector<std::string>{"nccl"}) {
    for (const auto& known : core::known_backends()) {
      const bool serves_all = known->name() == "shm" || known->name() == "gloo";   // without a launcher of their own
      if (serves_all && known->unavailable().empty()) options.backends.push_back(known->name());
    }
  }
  return options;
}

void bind_to_core(Context& context) {
  const std::vector<tune::Placement> all = tune::placement_of_all(context.world());
  const tune::Placement& mine = all[static_cast<std::size_t>(context.rank())];
  // Launchers may have given several ranks the cores of a socket: among those with the same cores each takes another.
  const bool overlaps = std::any_of(all.begin(), all.end(), [&](const tune::Placement& other) {
    cpu_set_t common;
    CPU_AND(&common, &mine.cores, &other.cores);
    return other.machine == mine.machine && !(other == mine) && CPU_COUNT(&common) > 0;
  });
  if (CPU_COUNT(&mine.cores) == 0 || overlaps || std::count(all.begin(), all.end(), mine) > usable_cores()) return;
  const auto place = static_cast<std::size_t>(std::count(all.begin(), all.begin() + context.rank(), mine));
  run_on(one_core(binding_order(core_mask())[place]));
}

std::vector<std::string> available_backends(const Context& context) {
  std::vector<std::string> names;
  for (const BackendInfo& backend : context.backends()) {
    if (backend.available) names.push_back(backend.name);
  }
  return names;
}

}  // namespace medley::cli
