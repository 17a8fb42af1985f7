// medley run: starts the local ranks of any program.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <medley/error.hpp>
#include <memory>

#include "bootstrap/launch.hpp"
#include "cli/command.hpp"

namespace medley::cli {

namespace {

// Replaces "--" while CLI11 parses, which would end the subcommand there.
const std::string double_dash = "\x01--";

std::vector<std::string> program_of(const CLI::App& run) {
  std::vector<std::string> words = run.remaining();
  const bool marked = !words.empty() && words[0] == double_dash;
  if (marked) words.erase(words.begin());
  std::replace(words.begin(), words.end(), double_dash, std::string("--"));  // a later one belongs to the program
  if (words.empty()) throw Error(ErrorKind::invalid, "run needs a program: medley run -n 4 -- PROGRAM ARGS");
  if (!marked && words[0].starts_with("-")) {
    throw Error(ErrorKind::invalid, fmt::format("run knows no option {}; see medley run --help", words[0]));
  }
  return words;
}

}  // namespace

void keep_double_dash(std::vector<std::string>& words) {
  if (words.empty() || words[0] != "run") return;
  const auto dash = std::find(words.begin(), words.end(), "--");
  if (dash != words.end()) *dash = double_dash;
}

void add_run(CLI::App& app) {
  struct Arguments {
    LaunchOptions options;
    double grace_seconds = 5;
    bool no_prefix = false;
    std::string report_to;
    std::string mpirun;
    std::string bind = "core";
    const CLI::App* command = nullptr;
  };
  auto given = std::make_shared<Arguments>();
  CLI::App* run =
      add_command(app, "run", "Start N local ranks of a program: medley run [OPTIONS] -- PROGRAM [ARGUMENTS]",
                  "medley run -n 4 --backends shm -- ./train --epochs 3", [given] {
                    LaunchOptions& options = given->options;
                    options.command = program_of(*given->command);
                    if (!given->report_to.empty()) return report_to_launcher(given->report_to, options.command);
                    options.prefix = !given->no_prefix;
                    options.bind = given->bind == "core" ? Bind::core : Bind::none;
                    if (!given->mpirun.empty()) setenv("MEDLEY_MPIRUN", given->mpirun.c_str(), 1);
                    options.grace = std::chrono::milliseconds(std::llround(given->grace_seconds * 1000));
                    return launch(options);
                  });
  run->add_option("-n,--nproc-per-node", given->options.ranks, "Ranks to start")->check(whole(1, 4096));
  run->add_option("--backends", given->options.backends,
                  "Comma-separated backends for the ranks (MEDLEY_BACKENDS); with mpi the ranks start through mpirun")
      ->type_name("LIST");
  run->add_option("--mpirun", given->mpirun,
                  "The mpirun that starts the ranks when mpi is among the backends, such as mpirun.mpich "
                  "(MEDLEY_MPIRUN)")
      ->type_name("PROGRAM");
  run->add_option("--grace", given->grace_seconds,
                  "Seconds between one rank's failure and the end of the others, in which they can raise "
                  "their own errors")
      ->check(between(0.0, 1e6))
      ->type_name("SECONDS")
      ->capture_default_str();
  one_of(
      run->add_option(
             "--bind", given->bind,
             "Binding; core: each rank on a core of its own, and nothing is bound where ranks outnumber the usable cores; "
             "none: ranks run wherever the kernel puts them, for programs with threads of their own")
          ->capture_default_str(),
      {"core", "none"});
  run->add_flag("--keep-going", given->options.keep_going, "One rank's failure does not end the others");
  run->add_flag("--no-prefix", given->no_prefix,
                "Ranks write straight to this terminal, without [rank] before each line");
  run->add_option("--report-to", given->report_to)->group("");  // how mpirun's ranks find the launcher
  // Everything from the first word that is not our option belongs to the program, dashes included.
  run->prefix_command();
  given->command = run;
}

}  // namespace medley::cli
