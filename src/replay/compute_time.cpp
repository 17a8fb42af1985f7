#include "replay/compute_time.hpp"

#include <sys/prctl.h>
#include <time.h>

#include <chrono>

namespace medley::replay {
namespace {

using Clock = std::chrono::steady_clock;

// A sleep overshoots by this much with a timer slack of 1 ns (20 to 50 µs, EPYC under KVM; with the usual slack 70 to
// 115): the rest is spun.
constexpr double oversleeping_s = 40e-6;

}  // namespace

double compute_seconds(const Action& action, const ReplayOptions& options) {
  if (options.tflops <= 0) return 0;
  if (action.us && options.by_machine) return options.scale * *action.us * 1e-6;
  return options.scale * (action.flops / (options.tflops * 1e12) +
                          static_cast<double>(action.memory_bytes) / (options.memory_gbs * 1e9));
}

void pass_time(double seconds) {
  static const thread_local int slack = prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
  static_cast<void>(slack);
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  if (seconds > oversleeping_s) {
    const double nap = seconds - oversleeping_s;
    timespec length{static_cast<time_t>(nap),
                    static_cast<long>((nap - static_cast<double>(static_cast<time_t>(nap))) * 1e9)};
    nanosleep(&length, nullptr);
  }
  while (Clock::now() < end) {
  }
}

}  // namespace medley::replay
