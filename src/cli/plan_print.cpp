// How `medley plan` shows a plan.
#include <fmt/format.h>

#include <algorithm>

#include "cli/plan.hpp"
#include "cli/table.hpp"
#include "model/read_layout.hpp"

namespace medley::cli {

using plan::Count;

std::string size_text(double bytes) {
  static constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  int unit = 0;
  while (bytes >= 1024 && unit < 5) {
    bytes /= 1024;
    ++unit;
  }
  if (unit == 0) return fmt::format("{:.0f} B", bytes);
  return fmt::format("{:.{}f} {}", bytes, bytes < 10 ? 2 : bytes < 100 ? 1 : 0, units[unit]);
}

void add_training(std::vector<std::string>& row, const cost::TrainingTime& training) {
  row.insert(row.end(), {fmt::format("{:.1f}", training.days), fmt::format("{:.0f}", training.gpu_hours)});
}

namespace {

void print_head(const cost::PlanResult& o) {
  const plan::Parameters p = plan::count_parameters(o.model);
  fmt::print("{}: {} parameters ({:.2f} B){}\n", o.model.name, p.total, static_cast<double>(p.total) / 1e9,
             o.model.moe() ? fmt::format(", {:.2f} B active", static_cast<double>(p.active) / 1e9) : "");
  plan::Layout l = o.layout;
  l.zero = plan::zero_stage(l, o.framework);
  const plan::Coordinates at = plan::coordinates(l, o.rank);
  fmt::print("{} on {} rank{}: {}; {} micro-batch{} of {} × {} tokens in {}\n", plan::name(o.framework), l.world(),
             l.world() == 1 ? "" : "s", plan::layout_text(l), l.micro_batches(), l.micro_batches() == 1 ? "" : "es",
             l.micro_batch, l.seq, name(l.dtype));
  fmt::print("assumed: {}\n", o.assumptions);
  fmt::print("rank {} (dp {}, tp {}, pp {}, cp {}), one step\n\n", o.rank, at.dp, at.tp, at.pp, at.cp);
}

void print_rows(const cost::PlanResult& o, bool all_rows) {
  Table rows({"op", "group", "n", "bytes", "count", "volume", "phase", "exposed", "why"});
  for (const plan::MergedRow& m : plan::merge_sizes(o.rows, all_rows)) {
    const std::string bytes =
        m.smallest == m.largest ? fmt::format("{}", m.largest) : fmt::format("{}–{}", m.smallest, m.largest);
    rows.add({std::string(name(m.row.op)), std::string(m.row.group), std::to_string(m.row.group_size), bytes,
              std::to_string(m.row.count), size_text(static_cast<double>(m.bytes)),
              std::string(plan::name(m.row.phase)), m.row.exposed ? "yes" : "no", std::string(m.row.why)});
  }
  fmt::print("{}\n", rows.str());
}

void print_totals(const cost::PlanResult& o) {
  const bool textbook = !o.textbook.empty();
  Table totals({"group", "count", "bytes", "on the wire", textbook ? "textbook" : ""});
  for (const auto& [group, total] : o.volume.by_group) {
    const auto known = o.textbook.find(std::string(group));
    totals.add({std::string(group), std::to_string(total.count), size_text(static_cast<double>(total.bytes)),
                size_text(total.wire_bytes), known != o.textbook.end() ? size_text(known->second) : ""});
  }
  const plan::Total& all = o.volume.all;
  totals.add({"all", std::to_string(all.count), size_text(static_cast<double>(all.bytes)), size_text(all.wire_bytes),
              textbook ? size_text(o.textbook_bytes) : ""});
  fmt::print("{}\n", totals.str());
}

void print_sizes(const plan::Volume& volume) {
  Table sizes({"size from", "messages", "share", ""});
  for (const plan::Bin& bin : volume.histogram) {
    const double share = static_cast<double>(bin.count) / static_cast<double>(std::max<Count>(1, volume.all.count));
    std::string bar;
    for (int i = 0; i < static_cast<int>(share * 40 + 0.5); ++i) bar += "█";
    sizes.add({size_text(static_cast<double>(bin.low)), std::to_string(bin.count), fmt::format("{:.1f} %", 100 * share),
               bar});
  }
  fmt::print("{}", sizes.str());
  fmt::print("{:.1f} % of the messages and {:.4f} % of the bytes are small (up to {})\n\n", 100 * volume.small.of_count,
             100 * volume.small.of_bytes, size_text(static_cast<double>(volume.small.limit)));
}

void print_memory(const cost::Memory& m) {
  const auto text = [](Count bytes) { return size_text(static_cast<double>(bytes)); };
  fmt::print("memory per GPU: {} = parameters {} + gradients {} + optimizer {} + activations {}\n", text(m.total()),
             text(m.parameters), text(m.gradients), text(m.optimizer), text(m.activations));
}

std::string training_text(const cost::TrainingTime& t, Count gpus) {
  return fmt::format(
      "{} tokens: {:.0f} steps, {:.1f} days on {} GPU{}, {:.0f} GPU-hours (without restarts, checkpoints and "
      "evaluation)",
      cost::tokens_text(t.tokens), t.steps, t.days, gpus, gpus == 1 ? "" : "s", t.gpu_hours);
}

void print_time(const cost::MachineTime& time, const cost::FullestGpu& fullest, Count world) {
  fmt::print("{} on {}: rank {} needs {}\n\n", time.fits ? "fits" : "DOES NOT FIT", time.machine.name, fullest.rank,
             time.fit);
  const cost::StepCost& cost = time.cost;
  const bool recomputes = cost.hardware_tflops_per_gpu > cost.tflops_per_gpu;
  fmt::print("step {:.2f} ms: {:.0f} tokens/s and {:.1f} TFLOP/s per GPU (model FLOPs{})\n", cost.step_us * 1e-3,
             cost.tokens_per_s_per_gpu, cost.tflops_per_gpu,
             recomputes ? fmt::format("; {:.1f} with recomputation", cost.hardware_tflops_per_gpu) : "");
  if (time.training) fmt::print("{}\n", training_text(*time.training, world));
  Table table({"exposed time", "ms", "share"});
  for (std::size_t i = 0; i < cost::cause_count; ++i) {
    if (cost.spent[i] <= 0) continue;
    table.add({std::string(cost::name(static_cast<cost::Cause>(i))), fmt::format("{:.3f}", cost.spent[i] * 1e-3),
               fmt::format("{:.1f} %", 100 * cost.spent[i] / cost.step_us)});
  }
  fmt::print("{}", table.str());
}

}  // namespace

void print_plan(const cost::PlanResult& o, bool all_rows) {
  print_head(o);
  print_rows(o, all_rows);
  print_totals(o);
  print_sizes(o.volume);
  print_memory(o.memory);
  if (o.time) print_time(*o.time, o.fullest, o.layout.world());
}

}  // namespace medley::cli
