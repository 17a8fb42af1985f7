#include "shape/bench/measure.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fstream>

#include "base/write_file.hpp"
#include "cost/calibration.hpp"

namespace medley::shape {
namespace {

std::ofstream open(const std::string& path) {
  std::ofstream file(path);
  if (!file) core::refuse_to_write(path, errno);
  return file;
}

class Clock {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

void measure_streams(GpuBench& bench, std::ofstream& out) {
  out << "op,rows,cols,bytes,us\n";
  const auto one = [&](const char* name, StreamOp op, std::size_t rows, int cols) {
    out << fmt::format("{},{},{},{:.0f},{:.3f}\n", name, rows, cols, stream_bytes(op, rows, cols),
                       bench.stream(op, rows, cols))
        << std::flush;
  };
  for (int cols : {512, 768, 1024, 1600, 2048, 2560, 4096, 5120, 8192, 12288, 16384})
    for (std::size_t rows : {64u, 512u, 1024u, 2048u, 4096u, 8192u, 16384u, 32768u}) {
      one("elementwise", StreamOp::elementwise, rows, cols);
      one("layer_norm", StreamOp::layer_norm, rows, cols);
      one("layer_norm_backward", StreamOp::layer_norm_backward, rows, cols);
      one("softmax", StreamOp::softmax, rows, cols);
    }
}

void write_head(std::ofstream& out, const GpuFacts& facts, const std::string& clocks) {
  out << fmt::format("# date {:%Y-%m-%d}\n", fmt::gmtime(std::chrono::system_clock::now()));
  out << fmt::format("# gpu {}, {} SMs, L2 {:.0f} MB, driver {}, CUDA {}, cuBLAS {}\n# clocks before: {}\n", facts.name,
                     facts.sms, facts.l2_mb, facts.driver, facts.cuda, facts.cublas, clocks);
  out << "m,n,k,batch,layout,type,us,mad_us,clock_mhz,algorithm,tile,stages,split,cluster,swizzle,best_us,"
         "best_rank,"
         "name\n";
}

void write_sample(std::ofstream& out, const GemmSample& sample) {
  const Gemm& g = sample.gemm;
  out << fmt::format("{},{},{},{},{},{},{:.3f},{:.3f},{:.0f},{},{},{},{},{},{},{:.3f},{},{}\n", g.m, g.n, g.k, g.batch,
                     name(g.layout), name(g.type), sample.us, sample.mad_us, sample.clock_mhz, sample.algorithm,
                     sample.tile, sample.stages, sample.split, sample.cluster, sample.swizzle, sample.best_us,
                     sample.best_rank, g.name);
}

}  // namespace

BenchResult measure_gpu(const BenchRequest& request, const BenchEvents& events) {
  const auto gemms = bench_gemms(request);
  GpuBench bench(request.duty);
  BenchResult result{.gpu = bench.facts(), .wanted = gemms.size()};
  const Clock clock;
  const double limit = request.quick ? std::min(request.seconds, 60.0) : request.seconds;
  const std::string clocks = bench.clocks();
  std::ofstream out = open(request.csv);
  write_head(out, result.gpu, clocks);
  if (!request.stream_csv.empty()) {
    std::ofstream streams = open(request.stream_csv);
    measure_streams(bench, streams);
  }
  std::size_t refused = 0;
  for (std::size_t i = 0; i < gemms.size() && clock.seconds() < limit; ++i) {
    const bool best = request.best_of > 1 && i % std::size_t(std::max(1, request.best_of_every)) == 0;
    std::optional<GemmSample> sample;
    try {
      sample = bench.gemm(gemms[i], best ? request.best_of : 1);
    } catch (const Error& error) {
      if (++refused > 100) throw;  // one product a library refuses is skipped; a broken GPU is not
      events.skipped(gemms[i], error.what());
      continue;
    }
    if (!sample) continue;
    write_sample(out, *sample);
    if (++result.measured % 64 != 0) continue;
    out.flush();
    result.seconds = clock.seconds();
    events.progress(result);
  }
  out << fmt::format("# clocks after: {}\n", bench.clocks());
  out.close();
  if (!request.attention_csv.empty()) measure_attention(request.attention_csv, request.quick ? 20 : 60);
  result.seconds = clock.seconds();
  return result;
}

nlohmann::ordered_json calibrate_bench(const BenchRequest& request) {
  CalibrationInputs inputs = describe_sweep(request.csv);
  inputs.stream_csv = request.stream_csv;
  if (std::ifstream(request.attention_csv)) inputs.attention_csv = request.attention_csv;
  return calibrate(find_gpu(request.gpu), read_sweep(request.csv), inputs);
}

}  // namespace medley::shape
