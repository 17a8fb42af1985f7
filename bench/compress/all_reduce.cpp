// all_reduce of f32 with and without compression, in turn in one run: the ratio of their times by size. One of the
// job's ranks.
//   bench_compressed_all_reduce BACKEND [rounds]        (bench/compress/hosts.sh starts it on namespace hosts)
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <medley/medley.hpp>
#include <string>
#include <vector>

namespace {

double median(std::vector<double> times) {
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return fmt::print(stderr, "bench_compressed_all_reduce BACKEND [rounds]\n"), 2;
  const std::string backend = argv[1];
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 7;
  medley::Context context({backend});
  medley::Comm world = context.world();
  const std::vector<std::string> codecs{"none", "bf16", "int8", "int4", "fp8_e4m3"};
  for (std::size_t bytes = 16 << 10; bytes <= std::size_t{16} << 20; bytes *= 4) {
    std::vector<std::vector<double>> times(codecs.size());
    std::vector<float> tensor(bytes / 4);
    for (int round = -1; round < rounds; ++round) {  // the first is not timed
      for (std::size_t i = 0; i < codecs.size(); ++i) {
        for (std::size_t k = 0; k < tensor.size(); ++k) tensor[k] = static_cast<float>(k % 1000) * 1e-3f;
        world.barrier();
        const auto begin = std::chrono::steady_clock::now();
        world.all_reduce(tensor, medley::avg, {.compress = codecs[i]});
        world.barrier();
        if (round >= 0)
          times[i].push_back(
              std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
      }
    }
    if (context.rank() != 0) continue;
    std::string line = fmt::format("{:6} KiB  uncompressed {:8.2f} ms", bytes >> 10, median(times[0]));
    for (std::size_t i = 1; i < codecs.size(); ++i)
      line += fmt::format("   {} {:.2f}x", codecs[i], median(times[0]) / median(times[i]));
    fmt::print("{}\n", line);
    std::fflush(stdout);
  }
}
