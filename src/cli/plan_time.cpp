// The part of `medley plan` that a machine adds: step time, throughput, what the time goes to, whether it
// fits.
#include <fmt/format.h>

#include "cli/plan.hpp"
#include "cli/table.hpp"

namespace medley::cli {
namespace {

constexpr double gib = 1024.0 * 1024 * 1024;

/// Datasheets say GB and mean GiB: an A100 of 80 GB has 81920 MiB.
double gpu_bytes(const plan::Machine& machine) {
  return machine.memory_gb * gib;
}

}  // namespace

bool PlanOutcome::fits() const {
  return !machine || static_cast<double>(memory.total()) <= gpu_bytes(*machine);
}

std::string misfit_text(const PlanOutcome& o) {
  return fmt::format("the layout needs {} a GPU and {} has {}; shard or recompute more, or pass --force",
                     size_text(static_cast<double>(o.memory.total())), o.machine->name,
                     size_text(gpu_bytes(*o.machine)));
}

void add_time(nlohmann::ordered_json& json, const PlanOutcome& o) {
  if (!o.machine) return;
  nlohmann::ordered_json breakdown;
  for (std::size_t i = 0; i < plan::cause_count; ++i) {
    breakdown[std::string(plan::name(static_cast<plan::Cause>(i)))] = o.time.spent[i];
  }
  json["machine"] = o.machine->name;
  json["step_us"] = o.time.step_us;
  json["tokens_per_s_per_gpu"] = o.time.tokens_per_s_per_gpu;
  json["tflops_per_gpu"] = o.time.tflops_per_gpu;
  json["hardware_tflops_per_gpu"] = o.time.hardware_tflops_per_gpu;
  json["fits"] = o.fits();
  json["gpu_memory"] = static_cast<plan::Count>(gpu_bytes(*o.machine));
  json["breakdown"] = breakdown;
}

void print_time(const PlanOutcome& o) {
  if (!o.machine) return;
  const plan::StepCost& time = o.time;
  fmt::print("{} {} of a GPU on {}\n\n", o.fits() ? "fits the" : "DOES NOT FIT the",
             size_text(gpu_bytes(*o.machine)), o.machine->name);
  fmt::print(
      "step {:.2f} ms: {:.0f} tokens/s and {:.1f} TFLOP/s per GPU (model FLOPs; {:.1f} with recomputation)\n",
      time.step_us * 1e-3, time.tokens_per_s_per_gpu, time.tflops_per_gpu, time.hardware_tflops_per_gpu);
  Table table({"exposed time", "ms", "share"});
  for (std::size_t i = 0; i < plan::cause_count; ++i) {
    if (time.spent[i] <= 0) continue;
    table.add({std::string(plan::name(static_cast<plan::Cause>(i))),
               fmt::format("{:.3f}", time.spent[i] * 1e-3),
               fmt::format("{:.1f} %", 100 * time.spent[i] / time.step_us)});
  }
  fmt::print("{}", table.str());
}

}  // namespace medley::cli
