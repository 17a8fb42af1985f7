// The order in which the collectives of a lane use its stages. Each stage serves them in the order in which they were issued, so that all
// ranks start the phases on a private lane in one order, while one collective is in a stage others are in the stages before and behind it.
// Used by the lane of a hierarchical backend.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>

namespace medley::algorithms {

/// Inside the host, between hosts, and inside the host again. A collective uses its stages in this order.
enum class Stage : std::uint8_t { enter, between, leave };
inline constexpr std::size_t stages = 3;

class PhaseOrder {
 public:
  using Number = std::uint64_t;

  /// A new collective, behind all others.
  Number add() {
    passed_.push_back(0);
    return first_ + passed_.size() - 1;
  }
  /// Whether every earlier collective has passed this stage.
  bool may_start(Number number, Stage stage) {
    Number& next = next_[static_cast<std::size_t>(stage)];
    while (next < number && has_passed(next, stage)) ++next;
    return next >= number;
  }
  /// The collective starts nothing more in this stage, and what it has started holds up no other.
  void pass(Number number, Stage stage) {
    if (number < first_) return;
    passed_[number - first_] |= bit(stage);
    while (!passed_.empty() && passed_.front() == all_passed) passed_.pop_front(), ++first_;
  }
  void pass_all(Number number) {
    for (const Stage stage : {Stage::enter, Stage::between, Stage::leave}) pass(number, stage);
  }

 private:
  static constexpr std::uint8_t bit(Stage stage) { return static_cast<std::uint8_t>(1u << static_cast<unsigned>(stage)); }
  static constexpr std::uint8_t all_passed = (1u << stages) - 1;
  bool has_passed(Number number, Stage stage) const { return number < first_ || (passed_[number - first_] & bit(stage)) != 0; }

  std::deque<std::uint8_t> passed_;      ///< the stages that each collective from number first_ on has passed
  Number first_ = 0;
  std::array<Number, stages> next_{};    ///< the first collective that had not passed the stage when may_start() last looked
};

}  // namespace medley::algorithms
