// A job that calls all_reduce for a while and checks every result, for slowed_link.sh: each rank prints the decisions
// about its routes as they take effect, and rank 0 the time per operation. Arguments: bytes, seconds.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <medley/medley.hpp>
#include <vector>

namespace {

double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: {} BYTES SECONDS\n", argv[0]);
    return 2;
  }
  const auto elements = static_cast<std::size_t>(std::strtoll(argv[1], nullptr, 10)) / sizeof(float);
  const double seconds = std::strtod(argv[2], nullptr);
  medley::Context context;
  medley::Comm world = context.world();
  std::vector<float> in(elements), out(elements);
  const double begun = now();
  double shown = begun, looked = begun;
  std::size_t decisions = 0, wrong = 0;
  std::vector<double> times;
  std::int64_t step = 0;
  for (bool over = false; !over; ++step) {
    const auto value = static_cast<float>(step % 1000);
    std::fill(in.begin(), in.end(), value + static_cast<float>(context.rank()));
    in[0] = context.rank() == 0 && now() - begun > seconds ? 1 : 0;  // rank 0 ends the job
    const double before = now();
    world.all_reduce(in, out, medley::sum);
    const double after = now();
    times.push_back(after - before);
    over = out[0] != 0;
    const float expected =
        value * static_cast<float>(context.size()) + static_cast<float>(context.size() * (context.size() - 1) / 2);
    for (std::size_t i = 1; i < elements; ++i) wrong += out[i] != expected;
    if (after - looked < 0.05 && !over) continue;
    looked = after;
    const std::vector<medley::RouteDecision> all = context.route_decisions();
    for (; decisions < all.size(); ++decisions) {
      const medley::RouteDecision& one = all[decisions];
      fmt::print("{:.2f} rank {} {} #{} {} -> {}: {}\n", after, context.rank(), one.changed ? "changed" : "kept",
                 one.sequence, one.from, one.to, one.reason);
    }
    if (context.rank() == 0 && after - shown >= 1) {
      std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
      fmt::print("{:.2f} median {:.0f} us of {} operations\n", after, times[times.size() / 2] * 1e6, times.size());
      times.clear();
      shown = after;
    }
    std::fflush(stdout);
  }
  fmt::print("{:.2f} rank {} {} operations, {} wrong values\n", now(), context.rank(), step, wrong);
  return wrong == 0 ? 0 : 1;
}
