// medley info: what this build of Medley can do on this machine.
#include <medley/version.hpp>
#include <fmt/format.h>

#include <array>
#include <medley/backend.hpp>
#include <medley/context.hpp>

#include "bootstrap/host.hpp"
#include "cli/command.hpp"
#include "cli/table.hpp"
#include "comm/plugins.hpp"

namespace medley::cli {
namespace {

struct Known {
  BackendInfo info;
  std::vector<Memory> memory;
  std::vector<bool> native = std::vector<bool>(op_count, false);
};

/// Whether it does an operation itself, judged by f32 and sum, in the first memory it has.
bool is_native(const Backend& backend, Op op, const std::vector<Memory>& memory) {
  return !memory.empty() && backend.native(op, DType::f32, ReduceOp::sum, memory.front());
}

Known look_at(core::KnownBackend& found) {
  Known known;
  known.info.name = found.name();
  known.info.reason = found.unavailable();
  if (!known.info.reason.empty()) return known;
  try {
    BackendParams alone;
    alone.hosts = {host_identity()};
    alone.store = make_local_store();
    alone.deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    const auto backend = found.plugin()->create(alone);
    known.info.available = true;
    known.info.version = backend->version();
    for (Memory memory : {Memory::host, Memory::cuda}) {
      if (backend->has_memory(memory)) known.memory.push_back(memory);
    }
    for (int i = 0; i < op_count; ++i) {
      known.native[static_cast<std::size_t>(i)] = is_native(*backend, static_cast<Op>(i), known.memory);
    }
  } catch (const std::exception& error) {
    known.info.reason = error.what();
  }
  return known;
}

nlohmann::ordered_json json_of(const std::vector<Known>& all) {
  nlohmann::ordered_json out{{"version", MEDLEY_VERSION_TEXT}, {"cores", usable_cores()}};
  for (int i = 0; i < op_count; ++i) out["operations"].push_back(name(static_cast<Op>(i)));
  for (int i = 0; i < dtype_count; ++i) out["dtypes"].push_back(name(static_cast<DType>(i)));
  for (int i = 0; i < reduce_op_count; ++i) out["reductions"].push_back(name(static_cast<ReduceOp>(i)));
  out["backends"] = nlohmann::ordered_json::array();
  for (const Known& known : all) {
    nlohmann::ordered_json backend{{"name", known.info.name}, {"available", known.info.available},
                                   {"reason", known.info.reason}, {"version", known.info.version},
                                   {"memory", nlohmann::ordered_json::array()},
                                   {"ops", nlohmann::ordered_json::object()}};
    for (Memory memory : known.memory) backend["memory"].push_back(name(memory));
    for (int i = 0; i < op_count && known.info.available; ++i) {
      backend["ops"][std::string(name(static_cast<Op>(i)))] = known.native[static_cast<std::size_t>(i)] ? "native" : "filled";
    }
    out["backends"].push_back(backend);
  }
  return out;
}

std::string text_of(const std::vector<Known>& all) {
  std::string text = fmt::format("medley {}, {} usable cores on {}\n\n", MEDLEY_VERSION_TEXT, usable_cores(), host_name());
  Table backends({"backend", "available", "version", "why not"});
  std::vector<std::string> header{"operation"};
  for (const Known& known : all) {
    backends.add({known.info.name, known.info.available ? "yes" : "no", known.info.version, known.info.reason});
    if (known.info.available) header.push_back(known.info.name);
  }
  text += backends.str() + "\n";
  Table operations(header);
  for (int i = 0; i < op_count; ++i) {
    std::vector<std::string> row{std::string(name(static_cast<Op>(i)))};
    for (const Known& known : all) {
      if (known.info.available) row.emplace_back(known.native[static_cast<std::size_t>(i)] ? "native" : "filled");
    }
    operations.add(row);
  }
  return text + operations.str();
}

}  // namespace

void add_info(CLI::App& app) {
  auto json = std::make_shared<std::string>();
  CLI::App* info = add_command(app, "info", "Version, operations and backends", "medley info --json -", [json] {
    std::vector<Known> all;
    for (const auto& found : core::known_backends()) all.push_back(look_at(*found));
    if (*json != "-") fmt::print("{}", text_of(all));
    write_json(*json, json_of(all));
    return 0;
  });
  info->add_option("--json", *json, "write it as JSON; - for stdout");
}

}  // namespace medley::cli
