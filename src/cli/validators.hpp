// Checks of what a user typed, each refusing it with a sentence that names the value and what would be right. They show no
// types of the parser in the help.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace medley::cli {

/// A finite number within the limits.
CLI::Validator between(double low, double high);
CLI::Validator whole(std::int64_t low, std::int64_t high);
/// A finite number above 0.
CLI::Validator positive();
/// A comma-separated list of backends: each must be known here, be a pair of such, or be `auto`.
CLI::Validator known_backends();
/// One of these words, which the help lists.
CLI::Option* one_of(CLI::Option* option, const std::vector<std::string>& words);
/// Throws Error(invalid) if one of these options of the command was given beside `with`, which ignores them.
void refuse_beside(const CLI::App& command, const std::string& with, std::initializer_list<const char*> options);
/// The name of a file or folder, which `type` says in the help. It is not empty, as an unset variable of a script would be.
CLI::Option* names_file(CLI::Option* option, const std::string& type = "FILE");

}  // namespace medley::cli
