// Shared by the commands that measure: reading operations, types and memory.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "tune/words.hpp"

namespace medley::cli {

using tune::dtype_of_word, tune::memory_of_word, tune::ops_of;
/// Adds --memory host|cuda; the default is host.
void add_memory(CLI::App& command, std::string& word);

}  // namespace medley::cli
