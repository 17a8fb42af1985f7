// libnccl-tuner-medley.so: named in NCCL_TUNER_PLUGIN, it lets NCCL take the algorithm, protocol and channels that
// `medley tune` measured as fastest. The table is the one that MEDLEY_TABLE names or the user's cached one. Nothing
// here may fail a job: where the plugin has nothing to say, NCCL decides as it does without it.
//
// All ranks of a communicator must choose alike. They do if they read the same table: the choice is a pure function of
// the table and of what NCCL passes, which is equal on all ranks. NCCL does not let a tuner communicate, so the log
// line of every rank has the table's hash.
#include <cstdlib>
#include <exception>
#include <memory>

#include "nccl_tuner/abi.hpp"
#include "nccl_tuner/comm_routes.hpp"

namespace medley::nccl_tuner {
namespace {

constexpr int log_warn = 2, log_info = 3;     // NCCL_LOG_WARN, NCCL_LOG_INFO
constexpr unsigned long log_tuning = 1 | 64;  // NCCL_INIT and NCCL_TUNING: shown by NCCL_DEBUG=INFO alone

Result make(void** context, std::size_t ranks, std::size_t nodes, Logger log) {
  *context = nullptr;
  const std::filesystem::path file = route::default_table();  // as in Medley's contexts
  std::error_code none;
  if (file.empty() || (!std::getenv("MEDLEY_TABLE") && !std::filesystem::exists(file, none))) {
    if (log)
      log(log_info, log_tuning, "medley", 0,
          "medley tuner: there is no route table, so NCCL decides; MEDLEY_TABLE names one");
    return 0;
  }
  try {
    const route::Table table = route::Table::load(file);
    auto routes = std::make_unique<CommRoutes>(table, static_cast<int>(ranks), static_cast<int>(nodes));
    if (log) {
      log(log_info, log_tuning, "medley", 0, "medley tuner: %s (hash %s) on %zu ranks of %zu nodes: %s", file.c_str(),
          table.hash().c_str(), ranks, nodes, routes->text().c_str());
    }
    *context = routes.release();
  } catch (const std::exception& error) {
    if (log)
      log(log_warn, log_tuning, "medley", 0, "medley tuner: NCCL decides, since the route table cannot be used: %s",
          error.what());
  }
  return 0;
}

/// Sets the cost of the chosen algorithm and protocol to nothing, so that NCCL takes them, unless it may not.
Result choose(void* context, Function function, std::size_t bytes, CostTable costs, int algorithms, int protocols,
              int* channels) {
  if (!context || !costs) return 0;
  const auto number = static_cast<std::size_t>(function);
  if (number >= tuned_ops.size()) return 0;
  const auto chosen =
      static_cast<const CommRoutes*>(context)->find(tuned_ops[number], static_cast<std::int64_t>(bytes));
  if (!chosen || chosen->algorithm >= algorithms || chosen->protocol >= protocols) return 0;
  float& cost = reinterpret_cast<float*>(costs)[chosen->algorithm * protocols + chosen->protocol];
  if (cost == ignored) return 0;
  cost = 0;
  if (channels && chosen->channels > 0) *channels = chosen->channels;
  return 0;
}

Result init(std::size_t ranks, std::size_t nodes, Logger log, void** context) {
  return make(context, ranks, nodes, log);
}

Result init_v5(void** context, std::uint64_t, std::size_t ranks, std::size_t nodes, Logger log, void*, void*) {
  return make(context, ranks, nodes, log);
}

Result choose_v3(void* context, Function function, std::size_t bytes, int, CostTable costs, int algorithms,
                 int protocols, int* channels) {
  return choose(context, function, bytes, costs, algorithms, protocols, channels);
}

Result choose_v4(void* context, Function function, std::size_t bytes, int, CostTable costs, int algorithms,
                 int protocols, int, int* channels) {
  return choose(context, function, bytes, costs, algorithms, protocols, channels);
}

Result destroy(void* context) {
  delete static_cast<CommRoutes*>(context);
  return 0;
}

}  // namespace
}  // namespace medley::nccl_tuner

extern "C" {
__attribute__((visibility("default"))) extern const medley::nccl_tuner::PluginV3 ncclTunerPlugin_v3;
__attribute__((visibility("default"))) extern const medley::nccl_tuner::PluginV4 ncclTunerPlugin_v4;
__attribute__((visibility("default"))) extern const medley::nccl_tuner::PluginV5 ncclTunerPlugin_v5;

const medley::nccl_tuner::PluginV3 ncclTunerPlugin_v3 = {"medley", medley::nccl_tuner::init,
                                                         medley::nccl_tuner::choose_v3, medley::nccl_tuner::destroy};
const medley::nccl_tuner::PluginV4 ncclTunerPlugin_v4 = {"medley", medley::nccl_tuner::init,
                                                         medley::nccl_tuner::choose_v4, medley::nccl_tuner::destroy};
const medley::nccl_tuner::PluginV5 ncclTunerPlugin_v5 = {"medley", medley::nccl_tuner::init_v5,
                                                         medley::nccl_tuner::choose_v4, medley::nccl_tuner::destroy};
}
