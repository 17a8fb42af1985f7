// The command `medley`: finds the subcommand and turns errors into one line and an exit status.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <medley/error.hpp>
#include <medley/version.hpp>
#include <string>
#include <vector>

#include "bootstrap/unknown_variables.hpp"
#include "cli/command.hpp"
#include "cli/terminal.hpp"

namespace {

int refuse(const std::string& what, int status) {
  fmt::print(stderr, "{} {}\n", medley::cli::alarming("medley:", stderr), what);
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Medley: mix-and-match communication for deep learning"};
  app.name("medley");
  app.set_version_flag("--version", std::string("medley ") + MEDLEY_VERSION_TEXT);
  app.require_subcommand(1);
  for (const char* type : {"INT", "UINT", "FLOAT"}) app.get_formatter()->label(type, "N");  // in the help
  medley::cli::add_bench(app);
  medley::cli::add_completion(app);
  medley::cli::add_explain(app);
  medley::cli::add_help(app);
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
  medley::warn_of_unknown_variables();
  try {
    std::vector<std::string> words(argv + 1, argv + argc);
    medley::cli::check_command(app, words);
    medley::cli::keep_double_dash(words);
    std::reverse(words.begin(), words.end());  // CLI11 takes them from the back
    app.parse(std::move(words));
  } catch (const CLI::RuntimeError& ended) {
    return ended.get_exit_code();  // of the command: exit_with()
  } catch (const CLI::ExtrasError& error) {
    const std::string unexpected = medley::cli::unexpected_words(app);
    return refuse(unexpected.empty() ? error.what() : unexpected, 2);
  } catch (const CLI::ParseError& error) {
    return error.get_exit_code() == 0 ? app.exit(error) : refuse(error.what(), 2);  // 0: --help
  } catch (const medley::Error& error) {
    return refuse(error.what(), error.kind() == medley::ErrorKind::invalid ? 2 : 1);
  } catch (const std::exception& error) {
    return refuse(error.what(), 1);
  }
  return 0;
}
