#include "cli/bench_ranks.hpp"

namespace medley::cli {

void add_memory(CLI::App& command, std::string& word) {
  command
      .add_option("--memory", word,
                  "Memory of the buffers; cuda: on the devices of each host, dealt to its ranks in turn")
      ->check(CLI::IsMember({"host", "cuda"}))
      ->capture_default_str();
}

}  // namespace medley::cli
