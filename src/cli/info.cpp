// medley info: what this build of Medley can do on this machine.
#include <fmt/format.h>

#include "cli/command.hpp"

namespace medley::cli {

void add_info(CLI::App& app) {
  add_command(app, "info", "Version, operations and backends", "medley info --json -", [] { return 0; });
}

}  // namespace medley::cli
