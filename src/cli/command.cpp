#include "cli/command.hpp"

#include <fmt/format.h>

#include <iostream>
#include <medley/error.hpp>

#include "core/write_file.hpp"

namespace medley::cli {

int& exit_status() {
  static int status = 0;
  return status;
}

CLI::App* add_command(CLI::App& parent, const std::string& name, const std::string& what, const std::string& example,
                      std::function<int()> action) {
  CLI::App* command = parent.add_subcommand(name, what);
  command->footer("Example:\n  " + example);
  if (action) command->callback([action = std::move(action)] { exit_status() = action(); });
  return command;
}

void write_json(const std::string& path, const nlohmann::ordered_json& value) {
  if (path.empty()) return;
  if (path == "-") {
    std::cout << value.dump(2) << "\n";
    return;
  }
  core::write_file(path, [&](std::ostream& out) { out << value.dump(2) << "\n"; });
}

}  // namespace medley::cli
