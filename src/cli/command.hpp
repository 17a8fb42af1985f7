// Shared by all subcommands: adding one, writing JSON, reading sizes. A subcommand's action returns the exit status: 0
// success, 1 what it checked does not hold. Bad usage and bad input are thrown as medley::Error of kind invalid and
// become status 2 in main().
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/validators.hpp"

namespace medley::cli {

/// Adds a subcommand whose `action` runs after parsing; `example` ends its --help.
CLI::App* add_command(CLI::App& parent, const std::string& name, const std::string& what, const std::string& example,
                      std::function<int()> action);

/// Ends the command line with this status, which main() returns.
void exit_with(int status);

/// --json: writes `what` to the file that `path` names.
void add_json(CLI::App& command, std::string& path, const std::string& what);

/// Throws Error(invalid) if one of these outputs of a command could not be written; "-" is stdout, "" none. Under a launcher
/// it looks at none: a rank that is refused alone would leave the others waiting.
void check_outputs(std::initializer_list<std::string> paths);

/// Writes `value` to `path`, or to stdout for "-"; nothing for an empty path.
void write_json(const std::string& path, const nlohmann::ordered_json& value);

/// Throws Error(invalid) when the first word is neither an option nor a command, naming the command that is spelled
/// most like it.
void check_command(const CLI::App& app, const std::vector<std::string>& words);
/// The names of the commands below one, without hidden ones.
std::vector<std::string> command_names(const CLI::App& app);
/// After parsing failed for words that nobody expected: a sentence with the option or command that is spelled most like
/// the first of them. Empty where there are none.
std::string unexpected_words(const CLI::App& app);

/// Lets `medley run … -- PROGRAM` through the parser; call it on the words of the command line before parsing.
void keep_double_dash(std::vector<std::string>& words);

// One per file, in alphabetical order.
void add_bench(CLI::App& app);
void add_completion(CLI::App& app);
void add_explain(CLI::App& app);
void add_help(CLI::App& app);
void add_info(CLI::App& app);
void add_list(CLI::App& app);
void add_plan(CLI::App& app);
void add_plan_calibrate(CLI::App& plan);
void add_plan_search(CLI::App& plan);
void add_reconcile(CLI::App& app);
void add_replay(CLI::App& app);
void add_report(CLI::App& app);
void add_run(CLI::App& app);
void add_shape(CLI::App& app);
void add_soak(CLI::App& app);
void add_trace(CLI::App& app);
void add_tune(CLI::App& app);
void add_watch(CLI::App& app);

/// --as, for commands whose --model may be a config.json.
void add_as(CLI::App& command, std::string& as);

}  // namespace medley::cli
