#include "shape/link.hpp"

#include "plan/schedule.hpp"

namespace medley::shape {
namespace {

// NCCL on one host: a launch costs about 5 µs and each step of a ring about 1 µs (nccl-tests, 8 GPUs:
// all_reduce of a few bytes takes 15 to 25 µs); large messages reach about 80 % of the link (A100: bus
// bandwidth 235 of 300 GB/s, H100: 365 of 450).
constexpr double launch_us = 5, hop_us = 1, share = 0.8;

}  // namespace

double link_us(const Gpu& gpu, Op op, double bytes, int ranks) {
  if (ranks < 2) return 0;
  const double hops = op == Op::send || op == Op::recv ? 1
                      : op == Op::all_reduce           ? 2 * (ranks - 1)
                                                       : ranks - 1;
  const double wire = plan::wire_bytes(op, plan::Count(bytes), ranks);
  return launch_us + hop_us * hops + wire / (share * gpu.link_gb_per_s) * 1e-3;
}

}  // namespace medley::shape
