// medley shape gemm: the predicted time of each row of a CSV of matrix products.
#include <fmt/format.h>

#include <fstream>
#include <iostream>

#include "cli/shape.hpp"
#include "cli/table.hpp"
#include "cost/calibration.hpp"
#include "cost/gemm_csv.hpp"
#include "cost/gpu_model.hpp"
#include "shape/words.hpp"

namespace medley::cli {
namespace {

struct GemmOptions {
  std::string gpu, file, json, calibration;
  bool column_major = false, sustained = false;
};

nlohmann::ordered_json losses(const shape::GemmLosses& lost) {
  return {{"alignment", lost.alignment},
          {"tile", lost.tile},
          {"wave", lost.wave},
          {"memory", lost.memory},
          {"launch", lost.launch}};
}

int predict_file(const GemmOptions& options) {
  const auto model = options.calibration.empty()
                         ? shape::GpuModel::named(options.gpu)
                         : shape::calibrated_model(shape::find_gpu(options.gpu), options.calibration);
  auto gemms = shape::read_gemm_csv(options.file);
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  Table table({"m", "n", "k", "batch", "layout", "type", "us", "TFLOP/s", "efficiency", "lost to", "kernel"});
  for (const auto& given : gemms) {
    const shape::Gemm called = options.column_major ? given : shape::called_for_rows(given);
    auto time = model.predict(called);
    if (options.sustained) {
      const double slower = model.sustained_us(called) / time.us;
      time.us *= slower;
      time.tflops /= slower;
      time.efficiency /= slower;
    }
    rows.push_back({{"m", given.m},
                    {"n", given.n},
                    {"k", given.k},
                    {"batch", given.batch},
                    {"layout", name(given.layout)},
                    {"type", name(given.type)},
                    {"predicted_us", time.us},
                    {"tflops", time.tflops},
                    {"efficiency", time.efficiency},
                    {"lost_to", time.lost_to()},
                    {"lost_us", losses(time.lost)},
                    {"kernel", time.kernel}});
    table.add({std::to_string(given.m), std::to_string(given.n), std::to_string(given.k),
               std::to_string(given.batch), std::string(name(given.layout)), std::string(name(given.type)),
               fmt::format("{:.2f}", time.us), fmt::format("{:.1f}", time.tflops),
               fmt::format("{:.0f} %", 100 * time.efficiency), std::string(time.lost_to()), time.kernel});
  }
  if (options.json != "-") {
    fmt::print("{}", table.str());
    fmt::print("{}: {}\n", options.gpu,
               model.calibrated() ? "calibrated, " + model.provenance()
                                  : "uncalibrated, from the datasheet: trust the order, not the size");
  }
  write_json(options.json, {{"gpu", options.gpu},
                            {"sustained", options.sustained},
                            {"calibrated", model.calibrated()},
                            {"model", model.provenance()},
                            {"rows", std::move(rows)}});
  return 0;
}

}  // namespace

void add_shape_gemm(CLI::App& shape) {
  auto options = std::make_shared<GemmOptions>();
  CLI::App* command = add_command(shape, "gemm", "Predicted time of each matrix product of a CSV",
                                  "medley shape gemm --gpu h200-sxm gemms.csv --json -",
                                  [options] { return predict_file(*options); });
  command
      ->add_option(
          "file", options->file,
          "CSV with columns m,n,k and optionally batch, layout (TN: X·Wᵀ, NN: its gradient of X, NT: of W) "
          "and type (bf16, fp16, fp8); others are ignored. C(m×n) is stored row by row, as PyTorch does and "
          "as "
          "medley shape prints them")
      ->required();
  command->add_option("--gpu", options->gpu, "GPU name, such as h200-sxm")->required();
  command->add_flag("--column-major", options->column_major,
                    "m and n are those of the cuBLAS call itself: C(m×n) is stored column by column");
  command->add_flag(
      "--sustained", options->sustained,
      "Back to back for a second or more, as in training: the power limit, not the boost clock, "
      "sets the pace. Default: a burst");
  command->add_option("--calibration", options->calibration,
                      "Use this calibration (medley shape bench -o) instead of the shipped one");
  command->add_option("--json", options->json, "Write the rows as JSON ('-' for stdout)");
}

}  // namespace medley::cli
