// What the commands that measure share: reading operations, types and memory.
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

}  // namespace medley::cli
