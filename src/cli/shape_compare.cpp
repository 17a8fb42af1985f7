// medley shape compare: one model across GPUs, or several models on one.
#include "shape/compare.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/shape.hpp"
#include "cli/shape_options.hpp"
#include "cli/table.hpp"

namespace medley::cli {
namespace {

struct CompareOptions : shape::CompareRequest {
  std::string json;
};

void print_comparison(const std::vector<shape::ComparedShape>& rows) {
  Table table({"model", "GPU", "parameters", "layer µs", "step ms", "tokens/s", "TFLOP/s", "efficiency",
               "against first", "most lost to", "largest micro-batch"});
  for (const shape::ComparedShape& r : rows) {
    const std::string parameters = fmt::format("{:.2f} B", double(r.parameters) / 1e9);
    if (!r.step) {
      table.add({r.model, r.gpu, parameters, "", "", "", "", "", "", r.refused, ""});
      continue;
    }
    table.add({r.model, r.gpu, parameters, fmt::format("{:.1f}", r.step->layer_us),
               fmt::format("{:.2f}", r.step->step_us / 1000), fmt::format("{:.0f}", r.step->tokens_per_s),
               fmt::format("{:.0f}", r.step->tflops), fmt::format("{:.0f} %", 100 * r.step->efficiency),
               fmt::format("{:.2f}×", r.against_first), std::string(r.lost_to),
               r.largest_micro_batch > 0
                   ? fmt::format("{}{}", r.largest_micro_batch, r.fits ? "" : " (this one does not fit)")
                   : "none fits"});
  }
  fmt::print("{}", table.str());
  if (std::ranges::any_of(rows, [](const auto& row) { return !row.calibrated; }))
    fmt::print("GPUs without a calibration are predicted from their datasheet: trust the order, not the size\n");
}

int compare(const CompareOptions& options) {
  const shape::CompareResult result = shape::compare_shapes(options);
  if (options.json != "-") print_comparison(result.rows);
  write_json(options.json, to_json(result));
  return 0;
}

}  // namespace

void add_shape_compare(CLI::App& shape) {
  auto options = std::make_shared<CompareOptions>();
  CLI::App* command = add_command(shape, "compare", "One model across GPUs, or several models on one",
                                  "medley shape compare --model llama-2-7b --gpu a100-80-sxm,h100-sxm,h200-sxm\n"
                                  "  medley shape compare --model gpt3-2.7b,pythia-2.8b --gpu h200-sxm",
                                  [options] { return compare(*options); });
  command
      ->add_option("--model", options->models,
                   "Models: names of the zoo and config files, separated by commas, or one inline; may be repeated")
      ->take_all();
  add_as(*command, options->as);
  command->add_option("--gpu", options->gpus, "GPU names")->delimiter(',')->take_all();
  add_shape_layout(*command, *options, options->json);
}

}  // namespace medley::cli
