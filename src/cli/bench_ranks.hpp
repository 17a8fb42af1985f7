// What the commands that measure share: reading operations, types and memory, the cores and devices of their ranks, the backends
// there are.
#pragma once

#include <CLI/CLI.hpp>
#include <medley/medley.hpp>
#include <string>
#include <vector>

namespace medley::cli {

/// `all`, or names separated by commas. recv is measured together with send and left out of all.
std::vector<Op> ops_of(const std::string& text);
DType dtype_of_word(const std::string& word);
/// Adds --memory host|cuda, host at first.
void add_memory(CLI::App& command, std::string& word);
/// Throws Error(invalid) where this machine cannot have such memory, so that a command complains once before any rank starts.
Memory memory_of_word(const std::string& word);
/// What a context needs to measure these backends on such memory: of CUDA memory the rank's device, and where only nccl is
/// named something beside it that moves host memory, since ranks also tell each other their times.
ContextOptions context_for(std::vector<std::string> backends, Memory memory);
/// A core for each rank of a machine where there are enough: two ranks that wait by yielding can share one for seconds while
/// another is free. Threads that libraries have started before stay free to go anywhere. Collective.
void bind_to_core(Context& context);
std::vector<std::string> available_backends(const Context& context);

}  // namespace medley::cli
