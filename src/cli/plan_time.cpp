// The part of `medley plan` that a machine adds: step time, throughput, what the time goes to, whether it
// fits.
#include <fmt/format.h>

#include "cli/plan.hpp"
#include "cli/table.hpp"

namespace medley::cli {
namespace {

constexpr double gib = 1024.0 * 1024 * 1024;

/// Datasheets say GB and mean GiB: an A100 of 80 GB has 81920 MiB.
double gpu_bytes(const cost::Machine& machine) {
  return machine.memory_gb * gib;
}

}  // namespace

bool PlanOutcome::fits() const {
  return !machine || static_cast<double>(fullest.memory.total()) <= cost::usable_memory(gpu_bytes(*machine));
}

std::string misfit_text(const PlanOutcome& o) {
  return fmt::format("the layout does not fit {}: rank {} needs {}; shard or recompute more, or pass --force",
                     o.machine->name, o.fullest.rank,
                     cost::fit_sentence(o.fullest.memory, gpu_bytes(*o.machine)));
}

void add_time(nlohmann::ordered_json& json, const PlanOutcome& o) {
  if (!o.machine) return;
  nlohmann::ordered_json breakdown;
  for (std::size_t i = 0; i < cost::cause_count; ++i) {
    breakdown[std::string(cost::name(static_cast<cost::Cause>(i)))] = o.time.spent[i];
  }
  json["machine"] = o.machine->name;
  json["step_us"] = o.time.step_us;
  json["tokens_per_s_per_gpu"] = o.time.tokens_per_s_per_gpu;
  json["tflops_per_gpu"] = o.time.tflops_per_gpu;
  json["hardware_tflops_per_gpu"] = o.time.hardware_tflops_per_gpu;
  json["fits"] = o.fits();
  json["fullest_rank"] = o.fullest.rank;
  json["fit"] = cost::fit_sentence(o.fullest.memory, gpu_bytes(*o.machine));
  json["gpu_memory"] = static_cast<plan::Count>(gpu_bytes(*o.machine));
  json["breakdown"] = breakdown;
}

void print_time(const PlanOutcome& o) {
  if (!o.machine) return;
  const cost::StepCost& time = o.time;
  fmt::print("{} on {}: rank {} needs {}\n\n", o.fits() ? "fits" : "DOES NOT FIT", o.machine->name,
             o.fullest.rank, cost::fit_sentence(o.fullest.memory, gpu_bytes(*o.machine)));
  fmt::print(
      "step {:.2f} ms: {:.0f} tokens/s and {:.1f} TFLOP/s per GPU (model FLOPs; {:.1f} with recomputation)\n",
      time.step_us * 1e-3, time.tokens_per_s_per_gpu, time.tflops_per_gpu, time.hardware_tflops_per_gpu);
  Table table({"exposed time", "ms", "share"});
  for (std::size_t i = 0; i < cost::cause_count; ++i) {
    if (time.spent[i] <= 0) continue;
    table.add({std::string(cost::name(static_cast<cost::Cause>(i))),
               fmt::format("{:.3f}", time.spent[i] * 1e-3),
               fmt::format("{:.1f} %", 100 * time.spent[i] / time.step_us)});
  }
  fmt::print("{}", table.str());
}

}  // namespace medley::cli
