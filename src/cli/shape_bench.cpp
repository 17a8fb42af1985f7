// medley shape bench: measures matrix products and bandwidth on the GPU at hand and writes a calibration.
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <medley/error.hpp>

#include "cli/shape.hpp"
#include "cost/calibration.hpp"
#include "cost/gemm_csv.hpp"
#include "shape/sweep.hpp"
#include "shape/words.hpp"
#ifdef MEDLEY_GPU_BENCH
#include "shape/bench/gpu_bench.hpp"
#endif

namespace medley::cli {
namespace {

struct BenchOptions {
  std::string gemms, csv = "gemm_sweep.csv", stream_csv, attention_csv, gpu = "h200-sxm", output;
  double seconds = 240, duty = 0.5;
  bool quick = false, dry_run = false;
  int best_of = 8, best_of_every = 16;
};

std::vector<shape::Gemm> wanted(const BenchOptions& options) {
  if (!options.gemms.empty()) return shape::read_gemm_csv(options.gemms);
  return shape::calibration_gemms(options.quick ? 4000 : 40000);
}

[[maybe_unused]] std::ofstream open(const std::string& path) {
  std::ofstream file(path);
  if (!file)
    throw Error(ErrorKind::invalid, fmt::format("cannot write {}: check that its folder exists", path));
  return file;
}

class Clock {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

#ifdef MEDLEY_GPU_BENCH
void measure_streams(shape::GpuBench& bench, std::ofstream& out) {
  out << "op,rows,cols,bytes,us\n";
  const auto one = [&](const char* name, shape::StreamOp op, std::size_t rows, int cols) {
    out << fmt::format("{},{},{},{:.0f},{:.3f}\n", name, rows, cols, shape::stream_bytes(op, rows, cols),
                       bench.stream(op, rows, cols))
        << std::flush;
  };
  for (int cols : {512, 768, 1024, 1600, 2048, 2560, 4096, 5120, 8192, 12288, 16384})
    for (std::size_t rows : {64u, 512u, 1024u, 2048u, 4096u, 8192u, 16384u, 32768u}) {
      one("elementwise", shape::StreamOp::elementwise, rows, cols);
      one("layer_norm", shape::StreamOp::layer_norm, rows, cols);
      one("layer_norm_backward", shape::StreamOp::layer_norm_backward, rows, cols);
      one("softmax", shape::StreamOp::softmax, rows, cols);
    }
}

/// Fits what was just measured; `medley shape gemm --calibration` and the advisor read the result.
int write_calibration(const BenchOptions& options) {
  auto inputs = shape::describe_sweep(options.csv);
  inputs.stream_csv = options.stream_csv;
  if (std::ifstream(options.attention_csv)) inputs.attention_csv = options.attention_csv;
  const auto samples = shape::read_sweep(options.csv);
  shape::write_calibration(options.output, calibrate(shape::find_gpu(options.gpu), samples, inputs));
  fmt::print("calibration of {} written to {}\n", options.gpu, options.output);
  return 0;
}

int measure(const BenchOptions& options) {
  const auto gemms = wanted(options);
  shape::GpuBench bench(options.duty);
  const auto& facts = bench.facts();
  const Clock clock;
  const double limit = options.quick ? std::min(options.seconds, 60.0) : options.seconds;
  const std::string before = bench.clocks();
  std::ofstream out = open(options.csv);
  out << fmt::format("# date {:%Y-%m-%d}\n", fmt::gmtime(std::chrono::system_clock::now()));
  out << fmt::format("# gpu {}, {} SMs, L2 {:.0f} MB, driver {}, CUDA {}, cuBLAS {}\n# clocks before: {}\n",
                     facts.name, facts.sms, facts.l2_mb, facts.driver, facts.cuda, facts.cublas, before);
  out << "m,n,k,batch,layout,type,us,mad_us,clock_mhz,algorithm,tile,stages,split,cluster,swizzle,best_us,"
         "best_rank,"
         "name\n";
  if (!options.stream_csv.empty()) {
    std::ofstream streams = open(options.stream_csv);
    measure_streams(bench, streams);
  }
  std::size_t done = 0, refused = 0;
  const bool terminal = isatty(STDERR_FILENO) != 0;
  for (std::size_t i = 0; i < gemms.size() && clock.seconds() < limit; ++i) {
    const bool best = options.best_of > 1 && i % std::size_t(std::max(1, options.best_of_every)) == 0;
    std::optional<shape::GemmSample> sample;
    try {
      sample = bench.gemm(gemms[i], best ? options.best_of : 1);
    } catch (const Error& error) {
      if (++refused > 100) throw;  // one product a library refuses is skipped; a broken GPU is not
      fmt::print(stderr, "skipped {}x{}x{}: {}\n", gemms[i].m, gemms[i].n, gemms[i].k, error.what());
      continue;
    }
    if (!sample) continue;
    const auto& g = sample->gemm;
    out << fmt::format("{},{},{},{},{},{},{:.3f},{:.3f},{:.0f},{},{},{},{},{},{},{:.3f},{},{}\n", g.m, g.n,
                       g.k, g.batch, name(g.layout), name(g.type), sample->us, sample->mad_us,
                       sample->clock_mhz, sample->algorithm, sample->tile, sample->stages, sample->split,
                       sample->cluster, sample->swizzle, sample->best_us, sample->best_rank, g.name);
    if (++done % 64 == 0) out.flush();
    if (terminal && done % 64 == 0)
      fmt::print(stderr, "\r{} of {} products, {:.0f} s", done, gemms.size(), clock.seconds());
  }
  if (terminal) fmt::print(stderr, "\n");
  out << fmt::format("# clocks after: {}\n", bench.clocks());
  out.close();
  if (!options.attention_csv.empty())
    shape::measure_attention(options.attention_csv, options.quick ? 20 : 60);
  fmt::print("{} products of {} measured on {} in {:.0f} s: {}\n", done, gemms.size(), facts.name,
             clock.seconds(), options.csv);
  return options.output.empty() ? 0 : write_calibration(options);
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
  const auto gemms = wanted(options);
  double flops = 0;
  for (const auto& gemm : gemms) flops += gemm.flops();
  fmt::print("{} products, {:.3g} TFLOP once\n", gemms.size(), flops * 1e-12);
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
  command->add_option("--csv", options->csv, "Where the measured rows go")->capture_default_str();
  command->add_option("--stream-csv", options->stream_csv,
                      "Also measure element-wise, layer norm and softmax into this file");
  command->add_option("--attention-csv", options->attention_csv,
                      "Also measure fused attention, through PyTorch where python3 has it, into this file");
  command->add_option("--gpu", options->gpu, "Which GPU of the table this is, for the calibration")
      ->capture_default_str();
  command->add_option("-o,--output", options->output, "Fit what was measured and write the calibration here");
  command->add_option("--seconds", options->seconds, "Stop after this long")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command
      ->add_option("--duty", options->duty,
                   "Share of the time the GPU is kept busy; 1 measures under sustained power")
      ->check(CLI::Range(0.05, 1.0))
      ->capture_default_str();
  command->add_flag("--quick", options->quick, "At most one minute: enough to calibrate");
  command->add_option("--best-of", options->best_of, "How many of cuBLASLt's algorithms to try")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  command->add_option("--best-of-every", options->best_of_every, "Try them on every i-th product")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command->add_flag("--dry-run", options->dry_run, "List what would be measured, and its work");
}

}  // namespace medley::cli
