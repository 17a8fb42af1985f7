// medley shape gemm: the predicted time of each row of a CSV of matrix products.
#include <fmt/format.h>

#include "cli/shape.hpp"
#include "cli/table.hpp"
#include "cost/gemm_times.hpp"

namespace medley::cli {
namespace {

struct GemmOptions : cost::GemmTimesRequest {
  std::string json;
};

void print_gemms(const cost::GemmTimesResult& result) {
  Table table({"m", "n", "k", "batch", "layout", "type", "us", "TFLOP/s", "efficiency", "lost to", "kernel"});
  for (const auto& [gemm, time] : result.rows)
    table.add({std::to_string(gemm.m), std::to_string(gemm.n), std::to_string(gemm.k), std::to_string(gemm.batch),
               std::string(name(gemm.layout)), std::string(name(gemm.type)), fmt::format("{:.2f}", time.us),
               fmt::format("{:.1f}", time.tflops), fmt::format("{:.0f} %", 100 * time.efficiency),
               std::string(time.lost_to()), time.kernel});
  fmt::print("{}", table.str());
  fmt::print("{}: {}\n", result.gpu,
             result.calibrated ? "calibrated, " + result.provenance
                               : "uncalibrated, from the datasheet: trust the order, not the size");
}

int predict_file(const GemmOptions& options) {
  const cost::GemmTimesResult result = cost::gemm_times(options);
  if (options.json != "-") print_gemms(result);
  write_json(options.json, to_json(result));
  return 0;
}

}  // namespace

void add_shape_gemm(CLI::App& shape) {
  auto options = std::make_shared<GemmOptions>();
  CLI::App* command =
      add_command(shape, "gemm", "Predicted time of each matrix product of a CSV",
                  "medley shape gemm --gpu h200-sxm gemms.csv --json -", [options] { return predict_file(*options); });
  command
      ->add_option("file", options->file,
                   "CSV with columns m,n,k and optionally batch, layout (TN: X·Wᵀ, NN: its gradient of X, NT: of W) "
                   "and type (bf16, fp16, fp8); others are ignored. C(m×n) is stored row by row, as PyTorch does and "
                   "as "
                   "medley shape prints them")
      ->required();
  command->add_option("--gpu", options->gpu, "GPU name, such as h200-sxm")->required();
  command->add_flag("--column-major", options->column_major,
                    "Take m and n as those of the cuBLAS call itself: C(m×n) is stored column by column");
  command->add_flag("--sustained", options->sustained,
                    "Back to back for a second or more, as in training: the power limit, not the boost clock, "
                    "sets the pace. Default: a burst");
  names_file(command->add_option("--calibration", options->calibration,
                                 "Use this calibration (medley shape bench -o) instead of the shipped one"));
  add_json(*command, options->json, "the rows");
}

}  // namespace medley::cli
