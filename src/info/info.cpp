#include "info/info.hpp"

#include <chrono>
#include <medley/backend.hpp>
#include <medley/version.hpp>
#include <nlohmann/json.hpp>

#include "bootstrap/host.hpp"
#include "comm/backend_loader.hpp"

namespace medley {
namespace {

constexpr auto longest_start = std::chrono::seconds(10);  // limit for starting a library, in a job of one rank

BackendAbilities look_at(core::KnownBackend& found) {
  BackendAbilities known;
  known.info.name = found.name();
  known.info.reason = found.unavailable();
  if (!known.info.reason.empty()) return known;
  try {
    BackendParams alone;
    alone.hosts = {host_identity()};
    alone.store = make_local_store();
    alone.deadline = std::chrono::steady_clock::now() + longest_start;
    const auto backend = found.plugin()->create(alone);
    known.info.available = true;
    known.info.version = backend->version();
    for (const Memory memory : {Memory::host, Memory::cuda}) {
      if (backend->has_memory(memory)) known.memory.push_back(memory);
    }
    for (int i = 0; i < op_count && !known.memory.empty(); ++i) {
      known.native[static_cast<std::size_t>(i)] =
          backend->native(static_cast<Op>(i), DType::f32, ReduceOp::sum, known.memory.front());
    }
  } catch (const std::exception& error) {
    known.info.reason = error.what();
  }
  return known;
}

}  // namespace

BuildInfo build_info() {
  BuildInfo out{.version = MEDLEY_VERSION_TEXT, .host = host_name(), .cores = usable_cores(), .backends = {}};
  for (const auto& found : core::known_backends()) out.backends.push_back(look_at(*found));
  return out;
}

nlohmann::ordered_json to_json(const BuildInfo& info) {
  nlohmann::ordered_json out{{"version", info.version}, {"cores", info.cores}};
  for (int i = 0; i < op_count; ++i) out["operations"].push_back(name(static_cast<Op>(i)));
  for (int i = 0; i < dtype_count; ++i) out["dtypes"].push_back(name(static_cast<DType>(i)));
  for (int i = 0; i < reduce_op_count; ++i) out["reductions"].push_back(name(static_cast<ReduceOp>(i)));
  out["backends"] = nlohmann::ordered_json::array();
  for (const BackendAbilities& known : info.backends) {
    nlohmann::ordered_json backend{{"name", known.info.name},
                                   {"available", known.info.available},
                                   {"reason", known.info.reason},
                                   {"version", known.info.version},
                                   {"memory", nlohmann::ordered_json::array()},
                                   {"ops", nlohmann::ordered_json::object()}};
    for (const Memory memory : known.memory) backend["memory"].push_back(name(memory));
    for (int i = 0; i < op_count && known.info.available; ++i) {
      const Op op = static_cast<Op>(i);
      backend["ops"][std::string(name(op))] = known.does(op) ? "native" : "filled";
    }
    out["backends"].push_back(backend);
  }
  return out;
}

}  // namespace medley
