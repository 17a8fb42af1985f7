// The order in which the collectives of a lane use its stages. Each stage serves them in the order in which they were
// issued, so that all ranks start the phases on a private lane in one order; while one collective is in a stage, others
// are in the stages before and behind it. Used by the lane of a hierarchical backend.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>

namespace medley::algorithms {

/// Inside the host, between hosts, and inside the host again. A collective uses its stages in this order.
enum class Stage : std::uint8_t { enter, between, leave };
inline constexpr std::size_t stages = 3;
/// How many collectives may be under way, segments counted one by one. Three would keep all stages busy; more hide the
/// latency between hosts. Each may hold scratch memory, and a library checks all its operations at every poll.
inline constexpr std::size_t most_under_way = 8;

class PhaseOrder {
 public:
  using Number = std::uint64_t;

  /// A new collective, behind all others.
  Number add() {
    passed_.push_back(0);
    return first_ + passed_.size() - 1;
  }
  /// Whether few enough of the earlier collectives are under way.
  bool may_begin(Number number) const { return number < first_ + most_under_way; }
  /// Whether every earlier collective has passed this stage.
  bool may_start(Number number, Stage stage) {
    Number& next = next_[static_cast<std::size_t>(stage)];
    while (next < number && has_passed(next, stage)) ++next;
    return next >= number;
  }
  /// The collective starts nothing more in this stage, and what it has started holds up no other.
  void pass(Number number, Stage stage) { passed_[number - first_] |= bit(stage); }
  /// The collective is complete, and has passed all stages.
  void end(Number number) {
    passed_[number - first_] = ended;
    while (!passed_.empty() && passed_.front() == ended) passed_.pop_front(), ++first_;
  }

 private:
  static constexpr std::uint8_t bit(Stage stage) {
    return static_cast<std::uint8_t>(1u << static_cast<unsigned>(stage));
  }
  static constexpr std::uint8_t ended = (1u << (stages + 1)) - 1;
  bool has_passed(Number number, Stage stage) const {
    return number < first_ || (passed_[number - first_] & bit(stage)) != 0;
  }

  /// The stages that each collective from number first_ on has passed, or `ended`
  std::deque<std::uint8_t> passed_;
  Number first_ = 0;  ///< the first collective that has not ended
  /// The first collective that had not passed the stage when may_start() last looked
  std::array<Number, stages> next_{};
};

}  // namespace medley::algorithms
