// medley info: what this build of Medley can do on this machine.
#include "info/info.hpp"

#include <fmt/format.h>

#include "cli/command.hpp"
#include "cli/table.hpp"
#include "cli/via_messages.hpp"

namespace medley::cli {
namespace {

std::string text_of(const BuildInfo& info) {
  std::string text = fmt::format("medley {}, {} usable cores on {}\n\n", info.version, info.cores, info.host);
  Table backends({"backend", "available", "version", "why not"});
  std::vector<std::string> header{"operation"};
  for (const BackendAbilities& known : info.backends) {
    backends.add({known.info.name, known.info.available ? "yes" : "no", known.info.version, known.info.reason});
    if (known.info.available) header.push_back(known.info.name);
  }
  text += backends.str() + "\n";
  Table operations(header);
  for (int i = 0; i < op_count; ++i) {
    const Op op = static_cast<Op>(i);
    std::vector<std::string> row{std::string(name(op))};
    for (const BackendAbilities& known : info.backends) {
      if (known.info.available) row.emplace_back(known.does(op) ? "native" : via_messages);
    }
    operations.add(row);
  }
  return text + operations.str() + "\n" + via_messages_legend;
}

}  // namespace

void add_info(CLI::App& app) {
  auto json = std::make_shared<std::string>();
  CLI::App* info = add_command(app, "info", "Version, operations and backends", "medley info --json -", [json] {
    const BuildInfo found = build_info();
    if (*json != "-") fmt::print("{}", text_of(found));
    write_json(*json, to_json(found));
    return 0;
  });
  add_json(*info, *json, "version, operations and backends");
}

}  // namespace medley::cli
