#include "plan/cost/link_time.hpp"

#include <algorithm>
#include <cmath>

namespace medley::plan {

GroupShape group_shape(const std::vector<Count>& ranks, Count gpus_per_host) {
  Count hosts = 0, last = -1;
  for (const Count rank : ranks) {
    hosts += rank / gpus_per_host != last;
    last = rank / gpus_per_host;
  }
  const Count size = static_cast<Count>(ranks.size());
  return {.size = size, .hosts = hosts, .per_host = ceil_div(size, std::max<Count>(hosts, 1))};
}

LinkTime::LinkTime(const Machine& machine)
    : inside_rate_(machine.inside.gb_per_s * machine.constants.inside_share * 1e3),
      between_rate_(machine.between.gb_per_s * machine.constants.between_share * 1e3 / machine.gpus_per_host),
      inside_latency_(machine.inside.latency_us),
      between_latency_(machine.between.latency_us),
      fixed_us_(machine.constants.collective_us) {}

/// A ring crosses each host's boundary with as many adapters as it has members there; other groups use the
/// others.
double LinkTime::ring_rate(const GroupShape& g) const {
  return g.hosts == 1 ? inside_rate_
                      : std::min(inside_rate_, between_rate_ * static_cast<double>(g.per_host));
}

/// Steps from the first member of a ring to the last.
double LinkTime::one_way_latency(const GroupShape& g) const {
  return static_cast<double>(g.size - g.hosts) * inside_latency_ +
         static_cast<double>(g.hosts - 1) * between_latency_;
}

double LinkTime::all_reduce_us(double bytes, const GroupShape& g) const {
  const double n = static_cast<double>(g.size);
  const double ring = 2 * one_way_latency(g) + 2 * bytes * (n - 1) / n / ring_rate(g);
  if (g.hosts == 1) return ring;
  // Two trees over the hosts, chains inside them: every byte goes up and down once, as in NCCL's own
  // estimate.
  const double depth = std::ceil(std::log2(static_cast<double>(g.hosts)));
  const double tree = 2 * (static_cast<double>(g.per_host - 1) * inside_latency_ + depth * between_latency_) +
                      2 * bytes / (0.92 * ring_rate(g));
  return std::min(ring, tree);
}

double LinkTime::all_to_all_us(double bytes, const GroupShape& g) const {
  const double n = static_cast<double>(g.size), near = static_cast<double>(g.per_host);
  const double inside = bytes * (near - 1) / n / inside_rate_;
  const double between = g.hosts == 1 ? 0 : bytes * (n - near) / n / between_rate_;
  return (g.hosts == 1 ? inside_latency_ : between_latency_) + std::max(inside, between);
}

double LinkTime::collective_us(Op op, double bytes, const GroupShape& g) const {
  if (g.size <= 1) return 0;
  const double n = static_cast<double>(g.size);
  switch (op) {
    case Op::all_reduce:
      return fixed_us_ + all_reduce_us(bytes, g);
    case Op::all_to_all:
    case Op::all_to_allv:
      return fixed_us_ + all_to_all_us(bytes, g);
    case Op::barrier:
      return fixed_us_ + all_reduce_us(4, g);
    default:
      return fixed_us_ + one_way_latency(g) + bytes * (n - 1) / n / ring_rate(g);
  }
}

double LinkTime::point_to_point_us(double bytes, bool same_host) const {
  return same_host ? inside_latency_ + bytes / inside_rate_ : between_latency_ + bytes / between_rate_;
}

}  // namespace medley::plan
