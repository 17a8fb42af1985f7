// Times of equal operations, gathered by group and layer; cells that behave alike become rows.
#pragma once

#include "reconcile/time.hpp"

namespace medley::reconcile {

/// Equal operations of one group and layer.
struct TimeCell {
  std::vector<float> observed_us;  ///< of operations with known times
  double expected_us = 0;          ///< sums over `predicted` operations
  std::int64_t predicted = 0;
  double bandwidth_us = 0;  ///< sum over `linked` operations at the full bandwidth of the link
  std::int64_t linked = 0;
  std::int64_t count = 0;
  std::int64_t with_waiting = 0;
  bool waits_known = true;
  Waits waits;
  std::map<int, double> late;
  std::map<std::uint32_t, double> behind;  ///< µs by kind of operation, in a catalog
  void add(const TimeCell& other);
};

class TimeCells {
 public:
  struct Key {
    Op op{};
    std::string group;
    int group_size = 0;
    std::int64_t bytes = 0;  ///< -1: not known
    std::uint8_t phase = 0;
    auto operator<=>(const Key&) const = default;
  };
  TimeCell& at(const Key& key, std::uint32_t group, std::int64_t layer) { return cells_[key][group][layer]; }

  /// `rank_steps`: steps summed over all ranks; `by_group`: over the ranks of each group. Groups as in the catalog.
  std::vector<TimeRow> rows(const Catalog& catalog, double rank_steps,
                            const std::map<std::uint32_t, double>& by_group) const;

 private:
  using Layers = std::map<std::int64_t, TimeCell>;
  std::map<Key, std::map<std::uint32_t, Layers>> cells_;
};

}  // namespace medley::reconcile
