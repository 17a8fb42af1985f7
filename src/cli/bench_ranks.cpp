#include "cli/bench_ranks.hpp"

#include "cli/validators.hpp"

namespace medley::cli {

void add_memory(CLI::App& command, std::string& word) {
  one_of(command
             .add_option("--memory", word,
                         "Memory of the buffers; cuda: on the devices of each host, dealt to its ranks in turn")
             ->capture_default_str(),
         {"host", "cuda"});
}

}  // namespace medley::cli
