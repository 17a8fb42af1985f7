// medley shape bench: measures matrix products and bandwidth on the GPU at hand and writes a calibration.
#include <fmt/format.h>

#include <medley/error.hpp>

#include "cli/shape.hpp"
#include "cli/terminal.hpp"
#include "cost/calibration.hpp"
#include "shape/bench_request.hpp"
#ifdef MEDLEY_GPU_BENCH
#include "shape/bench/measure.hpp"
#endif

namespace medley::cli {
namespace {

struct BenchOptions : shape::BenchRequest {
  std::string output;
  bool dry_run = false;
};

#ifdef MEDLEY_GPU_BENCH
int measure(const BenchOptions& options) {
  ProgressBar bar;
  shape::BenchEvents events;
  events.skipped = [&](const shape::Gemm& gemm, const char* why) {
    bar.clear();
    fmt::print(stderr, "skipped {}x{}x{}: {}\n", gemm.m, gemm.n, gemm.k, why);
  };
  events.progress = [&](const shape::BenchResult& so_far) {
    bar.show(static_cast<double>(so_far.measured), static_cast<double>(so_far.wanted),
             fmt::format("{} of {} products", so_far.measured, so_far.wanted));
  };
  const shape::BenchResult result = shape::measure_gpu(options, events);
  bar.clear();
  fmt::print("{} products of {} measured on {} in {:.0f} s: {}\n", result.measured, result.wanted, result.gpu.name,
             result.seconds, options.csv);
  if (options.output.empty()) return 0;
  cost::write_calibration(options.output, shape::calibrate_bench(options));
  fmt::print("calibration of {} written to {}\n", options.gpu, options.output);
  return 0;
}
#else
int measure(const BenchOptions&) {
  throw Error(ErrorKind::unavailable,
              "this build cannot measure: it was made without nvcc and cublasLt.h; build again where CUDA is "
              "installed");
}
#endif

int run_bench(const BenchOptions& options) {
  if (!options.dry_run) return measure(options);
  const shape::BenchWork work = shape::bench_work(options);
  fmt::print("{} products, {:.3g} TFLOP once\n", work.products, work.flops * 1e-12);
  return 0;
}

}  // namespace

void add_shape_bench(CLI::App& shape) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* command =
      add_command(shape, "bench", "Measure GEMMs and bandwidth on the GPU at hand",
                  "medley shape bench --quick --gpu h200-sxm -o h200.json --attention-csv attention.csv",
                  [options] { return run_bench(*options); });
  command->add_option("--gemms", options->gemms,
                      "CSV of products to measure (m,n,k,batch,layout,type); default: a built-in sweep");
  names_file(command->add_option("--csv", options->csv, "File for the measured rows")->capture_default_str());
  names_file(command->add_option("--stream-csv", options->stream_csv,
                                 "Also measure element-wise, layer norm and softmax into this file"));
  names_file(command->add_option("--attention-csv", options->attention_csv,
                                 "Also measure fused attention, through PyTorch where python3 has it, into this file"));
  command->add_option("--gpu", options->gpu, "Which GPU of the table this is, for the calibration")
      ->capture_default_str();
  names_file(
      command->add_option("-o,--output", options->output, "Fit what was measured and write the calibration here"));
  command->add_option("--seconds", options->seconds, "Stop after this long")->check(positive())->capture_default_str();
  command
      ->add_option("--duty", options->duty, "Share of the time the GPU is kept busy; 1 measures under sustained power")
      ->check(between(0.05, 1.0))
      ->capture_default_str();
  command->add_flag("--quick", options->quick, "At most one minute: enough to calibrate");
  command->add_option("--best-of", options->best_of, "How many of cuBLASLt's algorithms to try")
      ->check(whole(1, 64))
      ->capture_default_str();
  command->add_option("--best-of-every", options->best_of_every, "Try them on every i-th product")
      ->check(whole(1, 1 << 20))
      ->capture_default_str();
  command->add_flag("--dry-run", options->dry_run, "List what would be measured, and its work");
}

}  // namespace medley::cli
