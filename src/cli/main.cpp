// The command `medley`: finds the subcommand and turns errors into one line and an exit status.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <medley/error.hpp>
#include <medley/version.hpp>
#include <string>
#include <vector>

#include "cli/command.hpp"

int main(int argc, char** argv) {
  CLI::App app{"Medley: mix-and-match communication for deep learning"};
  app.name("medley");
  app.set_version_flag("--version", std::string("medley ") + MEDLEY_VERSION_TEXT);
  app.require_subcommand(1);
  medley::cli::add_bench(app);
  medley::cli::add_explain(app);
  medley::cli::add_info(app);
  medley::cli::add_list(app);
  medley::cli::add_plan(app);
  medley::cli::add_reconcile(app);
  medley::cli::add_replay(app);
  medley::cli::add_report(app);
  medley::cli::add_run(app);
  medley::cli::add_shape(app);
  medley::cli::add_soak(app);
  medley::cli::add_trace(app);
  medley::cli::add_tune(app);
  medley::cli::add_watch(app);
  try {
    std::vector<std::string> words(argv + 1, argv + argc);
    medley::cli::check_command(app, words);
    medley::cli::keep_double_dash(words);
    std::reverse(words.begin(), words.end());  // CLI11 takes them from the back
    app.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help
    fmt::print(stderr, "medley: {}\n", error.what());
    return 2;
  } catch (const medley::Error& error) {
    fmt::print(stderr, "medley: {}\n", error.what());
    return error.kind() == medley::ErrorKind::invalid ? 2 : 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "medley: {}\n", error.what());
    return 1;
  }
  return medley::cli::exit_status();
}
