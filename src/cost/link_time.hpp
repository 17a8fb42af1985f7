// How long one communication operation takes on a machine's wires: latency and bandwidth per level and per
// algorithm (ring, tree, NVLS), for the placement of the group's ranks on the levels. The cost model uses it
// for every Kind::comm entry.
#pragma once

#include "cost/machine.hpp"
#include "cost/words.hpp"

namespace medley::cost {

/// The placement of a group's ranks on hosts, and of the hosts on the levels above.
struct GroupShape {
  Count size = 1;
  Count hosts = 1;
  Count per_host = 1;          ///< members on one host
  std::vector<Count> units{};  ///< units of each further level (Machine::above) that the group spans
};

/// The shape of a group with these ranks, ascending, on hosts of `gpus_per_host` consecutive ranks.
GroupShape group_shape(const std::vector<Count>& ranks, Count gpus_per_host);
GroupShape group_shape(const std::vector<Count>& ranks, const Machine& machine);

class LinkTime {
 public:
  explicit LinkTime(const Machine& machine);
  /// The links at their full bandwidth, without latency or any loss to libraries: a lower bound, which the
  /// achieved share of a link is measured by.
  static LinkTime at_full_bandwidth(Machine machine);

  double collective_us(Op op, double bytes, const GroupShape& group) const;
  double point_to_point_us(double bytes, bool same_host) const;

 private:
  double ring_rate(const GroupShape& group) const;
  double ring_us(double moved, double rounds, const GroupShape& group) const;
  double all_reduce_us(double bytes, const GroupShape& group) const;
  double all_to_all_us(double bytes, const GroupShape& group) const;
  double one_way_latency(const GroupShape& group) const;
  double far_latency(const GroupShape& group) const;

  double inside_rate_;   ///< bytes per microsecond and GPU
  double between_rate_;  ///< bytes per microsecond and GPU, when all GPUs of the host send
  double nvls_rate_;     ///< tensor bytes per microsecond, reduced in the switch; 0: not available
  double inside_latency_, between_latency_;
  double between_message_gap_;
  std::vector<Level> above_;
  double fixed_us_, message_us_;
  double nvls_half_bytes_;  ///< below it, an all_reduce in the switch reaches less than half of its rate
};

}  // namespace medley::cost
