// medley shape compare: one model across GPUs, or several models on one.
#include <fmt/format.h>

#include <algorithm>
#include <medley/error.hpp>
#include <optional>

#include "cli/command.hpp"
#include "cli/shape.hpp"
#include "cli/shape_options.hpp"
#include "cli/table.hpp"
#include "shape/capacity.hpp"
#include "shape/losses.hpp"
#include "shape/step.hpp"

namespace medley::cli {
namespace {

using nlohmann::ordered_json;

struct CompareOptions : ShapeOptions {
  std::vector<std::string> models, gpus;
};

struct Row {
  std::string model, gpu;
  bool calibrated = false;
  double parameters = 0;
  std::optional<shape::Step> step{};  ///< none where the layout is impossible
  std::string lost_to{};              ///< or why it is impossible
  bool fits = false;
  shape::Count largest = 0;
};

Row compare_one(const CompareOptions& options, const plan::Model& model, const shape::GpuModel& gpu) {
  Row row{.model = model.name,
          .gpu = gpu.gpu().name,
          .calibrated = gpu.calibrated(),
          .parameters = double(plan::count_parameters(model).total)};
  try {
    const auto work = options.workload(model);
    shape::Pricer pricer(gpu);
    row.step = shape::step_time(pricer, model, work);
    const auto lost = shape::by_cause(shape::total_losses(shape::price_operators(gpu, model, work)));
    const auto worst = std::ranges::max_element(lost, {}, [](const auto& cause) { return cause.second; });
    row.lost_to = worst->first;
    row.fits = shape::fits(gpu.gpu(), model, work);
    row.largest = shape::largest_micro_batch(gpu.gpu(), model, work);
  } catch (const Error& error) {
    row.lost_to = error.what();
  }
  return row;
}

ordered_json to_json(const Row& row, double first) {
  ordered_json json{
      {"model", row.model}, {"gpu", row.gpu}, {"calibrated", row.calibrated}, {"parameters", row.parameters}};
  if (!row.step) {
    json["refused"] = row.lost_to;
    return json;
  }
  json.update({{"layer_us", row.step->layer_us},
               {"step_us", row.step->step_us},
               {"tokens_per_s_per_gpu", row.step->tokens_per_s},
               {"tflops_per_gpu", row.step->tflops},
               {"efficiency", row.step->efficiency},
               {"lost_to", row.lost_to},
               {"fits", row.fits},
               {"largest_micro_batch", row.largest},
               {"against_first", row.step->tokens_per_s / first}});
  return json;
}

void print_table(const std::vector<Row>& rows, double first) {
  Table table({"model", "GPU", "parameters", "layer µs", "step ms", "tokens/s", "TFLOP/s", "efficiency",
               "against first", "most lost to", "largest micro-batch"});
  for (const Row& r : rows) {
    if (!r.step) {
      table.add({r.model, r.gpu, fmt::format("{:.2f} B", r.parameters / 1e9), "", "", "", "", "", "",
                 r.lost_to, ""});
      continue;
    }
    table.add({r.model, r.gpu, fmt::format("{:.2f} B", r.parameters / 1e9),
               fmt::format("{:.1f}", r.step->layer_us), fmt::format("{:.2f}", r.step->step_us / 1000),
               fmt::format("{:.0f}", r.step->tokens_per_s), fmt::format("{:.0f}", r.step->tflops),
               fmt::format("{:.0f} %", 100 * r.step->efficiency),
               fmt::format("{:.2f}×", r.step->tokens_per_s / first), r.lost_to,
               r.largest > 0 ? fmt::format("{}{}", r.largest, r.fits ? "" : " (this one does not fit)")
                             : "none fits"});
  }
  fmt::print("{}", table.str());
}

int compare(const CompareOptions& options) {
  if (options.models.empty())
    throw Error(ErrorKind::invalid, "--model is missing: give one, or several times");
  if (options.gpus.empty())
    throw Error(ErrorKind::invalid, "--gpu is missing: give one, or several with commas");
  std::vector<Row> rows;
  for (const auto& name : options.models)
    for (const auto& gpu : options.gpus)
      rows.push_back(compare_one(options, shape_model(name, options.as), shape::GpuModel::named(gpu)));
  const auto possible = std::ranges::find_if(rows, [](const Row& row) { return row.step.has_value(); });
  if (possible == rows.end()) throw Error(ErrorKind::invalid, rows.front().lost_to);
  const double first = possible->step->tokens_per_s;
  if (options.json != "-") {
    print_table(rows, first);
    if (std::ranges::any_of(rows, [](const Row& row) { return !row.calibrated; }))
      fmt::print(
          "GPUs without a calibration are predicted from their datasheet: trust the order, not the size\n");
  }
  ordered_json json = ordered_json::array();
  for (const Row& row : rows) json.push_back(to_json(row, first));
  write_json(options.json, {{"rows", json}});
  return 0;
}

}  // namespace

void add_shape_compare(CLI::App& shape) {
  auto options = std::make_shared<CompareOptions>();
  CLI::App* command =
      add_command(shape, "compare", "One model across GPUs, or several models on one",
                  "medley shape compare --model llama-2-7b --gpu a100-80-sxm,h100-sxm,h200-sxm\n"
                  "  medley shape compare --model gpt3-2.7b --model pythia-2.8b --gpu h200-sxm",
                  [options] { return compare(*options); });
  command->add_option("--model", options->models, "Model; may be given several times")->take_all();
  add_as(*command, options->as);
  command->add_option("--gpu", options->gpus, "GPU names")->delimiter(',')->take_all();
  options->add_layout(*command);
}

}  // namespace medley::cli
