// medley shape fit: turns a measured sweep into a calibration and reports its error on held-out data.
#include <fmt/format.h>

#include "cli/shape.hpp"
#include "cli/table.hpp"
#include "cost/fit_sweep.hpp"

namespace medley::cli {
namespace {

struct FitOptions : cost::FitRequest {
  std::string output, json;
};

void print_fit(const std::vector<cost::FitRow>& rows) {
  Table table({"held out", "count", "MAPE", "p95", "worst", "roofline MAPE", "roofline p95"});
  const auto percent = [](double share) { return fmt::format("{:.1f} %", 100 * share); };
  for (const auto& [group, fitted, roofline] : rows)
    table.add({group, std::to_string(fitted.count), percent(fitted.mape), percent(fitted.p95), percent(fitted.worst),
               percent(roofline.mape), percent(roofline.p95)});
  fmt::print("{}", table.str());
}

int fit(FitOptions options) {
  options.calibrate = !options.output.empty();
  const cost::FitResult result = cost::fit_sweep(options);
  if (options.json != "-") print_fit(result.rows);
  write_json(options.json, to_json(result));
  if (options.calibrate) cost::write_calibration(options.output, result.calibration);
  return 0;
}

}  // namespace

void add_shape_fit(CLI::App& shape) {
  auto options = std::make_shared<FitOptions>();
  CLI::App* command =
      add_command(shape, "fit", "Calibrate the GPU model from a measured sweep, and check it on a held-out half",
                  "medley shape fit bench/shape/data/h200_sweep.csv -o h200.json", [options] { return fit(*options); });
  command->add_option("sweep", options->sweep, "CSV of medley shape bench")->required();
  command->add_option("--gpu", options->gpu, "GPU it was measured on")->capture_default_str();
  names_file(
      command->add_option("--attention", options->attention, "CSV of attention times (bench/shape/torch_bench.py)"));
  names_file(command->add_option("--streams", options->streams,
                                 "CSV of memory-bound operations (medley shape bench --stream-csv)"));
  command->add_option("--source", options->source, "Where a published table comes from: repository, path, version");
  command->add_option(
      "--like", options->like,
      "A shipped GPU whose sweep gives what the table lacks: backward and unaligned products, attention");
  command->add_option("--attention-scale", options->attention_scale,
                      "With --like: attention's times against that GPU's, after the rates of both");
  names_file(command->add_option("-o,--output", options->output, "Write the calibration, fitted to all rows, here"));
  add_json(*command, options->json, "the accuracy");
}

}  // namespace medley::cli
