#include "cost/link_time.hpp"

#include <algorithm>
#include <cmath>
#include <set>

namespace medley::cost {
namespace {

/// Small messages use latency-bound protocols (LL, LL128) at half the rate of large ones; from about this
/// size per rank on, NCCL reaches its full rates.
constexpr double half_rate_bytes = 256 * 1024;

}  // namespace

GroupShape group_shape(const std::vector<Count>& ranks, Count gpus_per_host) {
  Count hosts = 0, last = -1;
  for (const Count rank : ranks) {
    hosts += rank / gpus_per_host != last;
    last = rank / gpus_per_host;
  }
  const Count size = static_cast<Count>(ranks.size());
  return {.size = size, .hosts = hosts, .per_host = ceil_div(size, std::max<Count>(hosts, 1))};
}

GroupShape group_shape(const std::vector<Count>& ranks, const Machine& machine) {
  GroupShape shape = group_shape(ranks, machine.gpus_per_host);
  Count unit = machine.gpus_per_host;
  for (const Level& level : machine.above) {
    unit *= level.hosts;
    std::set<Count> met;
    for (const Count rank : ranks) met.insert(rank / unit);
    shape.units.push_back(static_cast<Count>(met.size()));
  }
  return shape;
}

LinkTime::LinkTime(const Machine& machine)
    : inside_rate_(machine.inside.gb_per_s * machine.constants.inside_share * 1e3),
      between_rate_(machine.between.gb_per_s * machine.constants.between_share * 1e3 / machine.gpus_per_host),
      nvls_rate_(machine.nvls_gb_per_s * 1e3),
      inside_latency_(machine.inside.latency_us),
      between_latency_(machine.between.latency_us),
      above_(machine.above),
      fixed_us_(machine.constants.collective_us),
      message_us_(machine.constants.message_us) {}

/// A ring crosses each host's boundary with as many adapters as it has members there; other groups use the
/// others. Above the hosts, an oversubscribed level divides the remaining rate.
double LinkTime::ring_rate(const GroupShape& g) const {
  if (g.hosts == 1) return inside_rate_;
  double between = between_rate_ * static_cast<double>(g.per_host);
  for (std::size_t i = 0; i < g.units.size() && i < above_.size(); ++i)
    if (g.units[i] > 1) between /= above_[i].oversubscription;
  return std::min(inside_rate_, between);
}

double LinkTime::far_latency(const GroupShape& g) const {
  double latency = between_latency_;
  for (std::size_t i = 0; i < g.units.size() && i < above_.size(); ++i)
    if (g.units[i] > 1) latency += above_[i].latency_us;
  return latency;
}

/// Steps from the first member of a ring to the last.
double LinkTime::one_way_latency(const GroupShape& g) const {
  return static_cast<double>(g.size - g.hosts) * inside_latency_ +
         static_cast<double>(g.hosts - 1) * far_latency(g);
}

double LinkTime::all_reduce_us(double bytes, const GroupShape& g) const {
  const double n = static_cast<double>(g.size), moved = 2 * bytes * (n - 1) / n;
  // Small tensors are sent whole or in chunks too small for the wire's full rate.
  const double slow = 1 + half_rate_bytes / std::max(half_rate_bytes / 8, bytes / n);
  const double ring = 2 * one_way_latency(g) + moved / ring_rate(g) * (g.hosts == 1 ? slow : 1);
  if (g.hosts == 1) {
    if (nvls_rate_ <= 0 || g.size < 4) return ring;
    return std::min(ring, 4 * inside_latency_ + bytes / nvls_rate_);
  }
  // Two trees over the hosts, chains inside them: every byte goes up and down once, as in NCCL's own
  // estimate.
  const double depth = std::ceil(std::log2(static_cast<double>(g.hosts)));
  const double tree = 2 * (static_cast<double>(g.per_host - 1) * inside_latency_ + depth * far_latency(g)) +
                      2 * bytes / (0.92 * ring_rate(g));
  return std::min(ring, tree);
}

double LinkTime::all_to_all_us(double bytes, const GroupShape& g) const {
  const double n = static_cast<double>(g.size), near = static_cast<double>(g.per_host);
  const double inside = bytes * (near - 1) / n / inside_rate_;
  double rate = between_rate_;
  for (std::size_t i = 0; i < g.units.size() && i < above_.size(); ++i)
    if (g.units[i] > 1) rate /= above_[i].oversubscription;
  const double between = g.hosts == 1 ? 0 : bytes * (n - near) / n / rate;
  return (g.hosts == 1 ? inside_latency_ : far_latency(g)) + std::max(inside, between);
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
    default: {
      // Rings of many hosts keep their chunks in flight: latency counts once per host, not once per rank.
      return fixed_us_ + one_way_latency(g) + bytes * (n - 1) / n / ring_rate(g);
    }
  }
}

double LinkTime::point_to_point_us(double bytes, bool same_host) const {
  return message_us_ +
         (same_host ? inside_latency_ + bytes / inside_rate_ : between_latency_ + bytes / between_rate_);
}

}  // namespace medley::cost
