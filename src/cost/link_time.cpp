#include "cost/link_time.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

namespace medley::cost {
namespace {

/// NCCL's protocols, relative to Simple: LL sends a flag with every 4 bytes and waits least per step, LL128
/// one with every 120 bytes. Latencies of a step over NVLink are 0.6, 1.9 and 3.4 µs (NCCL's tuning tables),
/// LL reaches 141 of 360 GB/s on Hopper.
struct Protocol {
  double latency, rate;
};
constexpr std::array<Protocol, 3> protocols{{{0.18, 0.4}, {0.56, 0.92}, {1, 1}}};

/// The share of a ring's rate that a tree over hosts reaches: 512 MB over 8 to 32 hosts of eight H100 with
/// EFA (crazyguitar/aws-gpu-communication-benchmark).
constexpr double tree_share = 0.6;

/// An all_to_all between hosts reaches 42 GB/s of an adapter of 50, where a ring reaches 46, and every peer
/// adds a sixth of the latency, small messages less: 32 MB to 2 GB over 2 to 32 hosts of p5.48xlarge (same
/// source).
constexpr double all_to_all_share = 0.91, peer_latency_share = 1.0 / 6;

/// Below this size, an all_reduce in the switch (NVLS) reaches less than half of its rate.
constexpr double nvls_half_bytes = 8e6;

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
      between_message_gap_(machine.between.message_gap_us),
      above_(machine.above),
      fixed_us_(machine.constants.collective_us),
      message_us_(machine.constants.message_us),
      nvls_half_bytes_(nvls_half_bytes) {}

LinkTime LinkTime::at_full_bandwidth(Machine machine) {
  machine.inside.latency_us = machine.between.latency_us = machine.between.message_gap_us = 0;
  for (Level& level : machine.above) level.latency_us = 0;
  machine.constants.inside_share = machine.constants.between_share = 1;
  machine.constants.collective_us = machine.constants.message_us = 0;
  LinkTime out(machine);
  out.nvls_half_bytes_ = 0;
  return out;
}

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
  return static_cast<double>(g.size - g.hosts) * inside_latency_ + static_cast<double>(g.hosts - 1) * far_latency(g);
}

/// A ring that goes around `rounds` times and moves `moved` bytes per rank, with the fastest protocol for the
/// size. Between hosts the latencies are those of Simple; a block travels along the whole ring, while every
/// connection between hosts passes the blocks of all ranks one by one: the longer of the two counts.
double LinkTime::ring_us(double moved, double rounds, const GroupShape& g) const {
  const double latency = rounds * one_way_latency(g), wire = moved / ring_rate(g);
  if (g.hosts > 1) {
    const double messages = rounds * static_cast<double>(g.size - 1) * between_message_gap_;
    return std::max(latency, messages) + wire;
  }
  double best = latency + wire;
  for (const Protocol& p : protocols) best = std::min(best, p.latency * latency + wire / p.rate);
  return best;
}

double LinkTime::all_reduce_us(double bytes, const GroupShape& g) const {
  const double n = static_cast<double>(g.size);
  const double ring = ring_us(2 * bytes * (n - 1) / n, 2, g);
  if (g.hosts == 1) {
    if (nvls_rate_ <= 0 || g.size < 4) return ring;
    return std::min(ring, 4 * inside_latency_ + (bytes + nvls_half_bytes_) / nvls_rate_);
  }
  // Two trees over the hosts, chains inside them: from every host but the root of each, every byte goes up
  // and down once.
  const double hosts = static_cast<double>(g.hosts), depth = std::ceil(std::log2(hosts));
  const double tree = 2 * (static_cast<double>(g.per_host - 1) * inside_latency_ + depth * far_latency(g)) +
                      2 * bytes * (hosts - 1) / hosts / (tree_share * ring_rate(g));
  return std::min(ring, tree);
}

/// NCCL moves a rank's own part through the same channels: on 2, 4 and 8 GPUs of a DGX B200, 512 MiB take
/// 0.81, 0.83 and 0.83 ms (ai-dynamo/aiconfigurator, NCCL 2.29).
double LinkTime::all_to_all_us(double bytes, const GroupShape& g) const {
  const double n = static_cast<double>(g.size), near = static_cast<double>(g.per_host);
  const double inside = bytes * near / n / inside_rate_;
  double rate = between_rate_;
  for (std::size_t i = 0; i < g.units.size() && i < above_.size(); ++i)
    if (g.units[i] > 1) rate /= above_[i].oversubscription;
  if (g.hosts == 1) return inside_latency_ + inside;
  const double message = bytes / n, far = n - near;
  const double each = far_latency(g) * peer_latency_share * std::min(1.0, 0.25 + message / 700e3);
  return far_latency(g) + std::max(inside, far * (message / (rate * all_to_all_share) + each));
}

double LinkTime::collective_us(Op op, double bytes, const GroupShape& g) const {
  if (g.size <= 1) return 0;
  const double n = static_cast<double>(g.size);
  switch (op) {
    case Op::all_reduce: return fixed_us_ + all_reduce_us(bytes, g);
    case Op::all_to_all:
    case Op::all_to_allv: return fixed_us_ + all_to_all_us(bytes, g);
    case Op::barrier: return fixed_us_ + all_reduce_us(4, g);
    default: return fixed_us_ + ring_us(bytes * (n - 1) / n, 1, g);
  }
}

double LinkTime::point_to_point_us(double bytes, bool same_host) const {
  return message_us_ + (same_host ? inside_latency_ + bytes / inside_rate_ : between_latency_ + bytes / between_rate_);
}

}  // namespace medley::cost
