#include "cli/bench_ranks.hpp"

namespace medley::cli {

void add_memory(CLI::App& command, std::string& word) {
  command.add_option("--memory", word, "where buffers lie; cuda: on the devices of each host, which its ranks take in turn")
      ->check(CLI::IsMember({"host", "cuda"}))
      ->capture_default_str();
}

}  // namespace medley::cli
