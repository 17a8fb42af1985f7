// Shared by the commands that measure: reading operations, types and memory.
#pragma once

#include <CLI/CLI.hpp>
#include <medley/medley.hpp>
#include <string>
#include <vector>

namespace medley::cli {

/// `all`, or names separated by commas. recv is measured together with send and is not part of all.
std::vector<Op> ops_of(const std::string& text);
DType dtype_of_word(const std::string& word);
/// Adds --memory host|cuda; the default is host.
void add_memory(CLI::App& command, std::string& word);
/// Throws Error(invalid) where this machine has no such memory, so that a command reports it once before any rank starts.
Memory memory_of_word(const std::string& word);

}  // namespace medley::cli
