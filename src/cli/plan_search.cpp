// medley plan search: the fastest layouts of a number of GPUs that fit their memory.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/command.hpp"
#include "cli/plan.hpp"
#include "cli/table.hpp"
#include "cli/terminal.hpp"
#include "cost/layout_search.hpp"
#include "model/read_layout.hpp"

namespace medley::cli {
namespace {

struct SearchOptions : cost::LayoutSearchRequest {
  std::string json;
  std::vector<std::string> sweeps;
};

/// What the rank spends most time on, besides computing.
std::string largest_wait(const cost::StepCost& step) {
  cost::Spent waits = step.spent;
  at(waits, cost::Cause::compute) = 0;
  const auto most = std::ranges::max_element(waits);
  return fmt::format("{} {:.1f} %", name(static_cast<cost::Cause>(most - waits.begin())), 100 * *most / step.step_us);
}

void print_tried(const cost::LayoutSearchResult& result) {
  fmt::print("{} on {} GPUs of {}, {}, {} samples a step{}\n", result.model.name, result.gpus, result.machine,
             plan::name(result.framework), result.global_batch,
             result.assumed_batch ? " (assumed, some 4 million tokens; --global-batch sets it)" : "");
  std::vector<std::string> axes;
  for (const cost::SweepAxis& axis : result.axes)
    axes.push_back(fmt::format("{}={}", axis.key, fmt::join(axis.values, ",")));
  fmt::print("tried: {}\n", fmt::join(axes, " "));
  if (!result.fixed.empty()) fmt::print("all with: {}\n", result.fixed);
  fmt::print("{} layouts: {} impossible, {} too large, {} timed\n\n", result.tried, result.impossible, result.too_large,
             result.tried - result.impossible - result.too_large);
}

void print_layouts(const cost::LayoutSearchResult& result, bool tokens) {
  std::vector<std::string> header{"layout",  "micro-batch",  "memory",      "step ms",
                                  "against", "tokens/s/GPU", "TFLOP/s/GPU", "most exposed"};
  if (tokens) header.insert(header.end(), {"days", "GPU-hours"});
  Table table(header);
  for (const cost::FoundLayout& found : result.layouts) {
    const cost::StepCost& step = found.time.cost;
    std::vector<std::string> row{plan::layout_text(found.layout),
                                 std::to_string(found.layout.micro_batch),
                                 size_text(static_cast<double>(found.fullest.memory.total())),
                                 fmt::format("{:.2f}", step.step_us * 1e-3),
                                 fmt::format("{:.3f}×", step.step_us / result.layouts.front().time.cost.step_us),
                                 fmt::format("{:.0f}", step.tokens_per_s_per_gpu),
                                 fmt::format("{:.1f}", step.tflops_per_gpu),
                                 largest_wait(step)};
    if (tokens) add_training(row, *found.time.training);
    table.add(row);
  }
  fmt::print("{}", table.str());
}

int search(SearchOptions options) {
  for (const std::string& text : options.sweeps) options.axes.push_back(cost::parse_axis(text));
  ProgressBar bar;
  options.progress = bar.counting("layouts");
  const cost::LayoutSearchResult result = cost::search_layouts(options);
  bar.clear();
  write_json(options.json, to_json(result));
  if (options.json != "-") {
    print_tried(result);
    if (!result.layouts.empty()) print_layouts(result, options.tokens > 0);
  }
  if (!result.layouts.empty()) return 0;
  fmt::print(stderr, "medley: no layout of {} GPUs fits {}{}\n", result.gpus, result.machine,
             result.nearest.empty() ? "; none is possible" : "; " + result.nearest);
  return 1;
}

}  // namespace

void add_plan_search(CLI::App& parent) {
  auto options = std::make_shared<SearchOptions>();
  CLI::App* command =
      add_command(parent, "search", "The fastest layouts of a number of GPUs that fit their memory",
                  "medley plan search --gpus 64 --machine dgx-h100 --model llama-3-8b --framework megatron \\\n"
                  "      --global-batch 256\n"
                  "  medley plan search --gpus 64 --machine dgx-h100 --model llama-3-8b --framework megatron \\\n"
                  "      --global-batch 256 --layout zero=1,recompute=none --sweep cp=1,2,4 --tokens 1T",
                  [options] { return search(*options); });
  add_plan_options(*command, *options);
  command->get_option("--layout")
      ->description("What every layout has, such as zero=1,recompute=none; the rest is varied");
  command->add_option("--gpus", options->gpus, "GPUs of the job")->check(positive());
  add_machine(*command, *options, "Machine");
  command
      ->add_option(
          "--sweep", options->sweeps,
          "Try these values of a layout key, in place of the usual ones: KEY=A,B,C or KEY=A:B; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--top", options->most, "Layouts to show")->check(positive())->capture_default_str();
  add_tokens(*command, *options);
  add_json(*command, options->json, "the layouts");
}

}  // namespace medley::cli
