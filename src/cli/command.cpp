#include "cli/command.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <iostream>
#include <medley/error.hpp>

#include "base/write_file.hpp"
#include "bootstrap/environment.hpp"

namespace medley::cli {

void exit_with(int status) {
  if (status != 0) throw CLI::RuntimeError(status);
}

CLI::App* add_command(CLI::App& parent, const std::string& name, const std::string& what, const std::string& example,
                      std::function<int()> action) {
  CLI::App* command = parent.add_subcommand(name, what);
  command->footer("Example:\n  " + example);
  if (action) {
    command->callback([action = std::move(action)] {
      if (!std::getenv("MEDLEY_PARSE_ONLY")) exit_with(action());  // for tests/docs: checks that the line parses
    });
  }
  return command;
}

void check_outputs(std::initializer_list<std::string> paths) {
  if (find_place(process_environment())) return;
  for (const std::string& path : paths)
    if (!path.empty() && path != "-") core::check_can_write(path);
}

void write_json(const std::string& path, const nlohmann::ordered_json& value) {
  if (path.empty()) return;
  // Names come from programs and from other tools' files, and need not be UTF-8.
  const std::string text = value.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  if (path == "-") {
    std::cout << text << "\n";
    return;
  }
  core::write_file(path, [&](std::ostream& out) { out << text << "\n"; });
}

void add_json(CLI::App& command, std::string& path, const std::string& what) {
  names_file(command.add_option("--json", path, fmt::format("Write {} as JSON; - for stdout", what)));
}

void add_as(CLI::App& command, std::string& as) {
  command.add_option("--as", as, "Read a config.json as this family instead of by its model_type");
}

}  // namespace medley::cli
