// Why a program waited for an operation: divides its exposed time by cause. The causes of one operation add up to its
// exposed time.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "reconcile/meetings.hpp"

namespace medley::reconcile {

enum class WaitCause : std::uint8_t {
  late_rank,  ///< another rank had not called it yet
  queue,      ///< another operation of its group was in progress
  order,      ///< called, but not started: lane order, or a hazard (an operation on the same memory)
  slow,       ///< the transfer took longer than predicted
  overlap,    ///< asynchronous, but the program waited for it before it could be complete
  blocking,   ///< a blocking call, as long as predicted: not overlapped by design
  unknown,    ///< the source or the prediction lacks what would tell
};
inline constexpr std::size_t wait_cause_count = 7;
std::string_view name(WaitCause cause) noexcept;

/// µs by cause.
class Waits {
 public:
  double& operator[](WaitCause cause) { return us_[static_cast<std::size_t>(cause)]; }
  double operator[](WaitCause cause) const { return us_[static_cast<std::size_t>(cause)]; }
  double total() const;
  void add(const Waits& other, double times = 1);

 private:
  std::array<double, wait_cause_count> us_{};
};

/// The wait for one operation on one rank. Times in ns.
struct Wait {
  double begin = 0;  ///< when the program began to wait; the end is the operation's
  /// Of the time from `begin` to the start: while another operation of its group was in progress
  double queued = 0;
  std::optional<Ready> last;  ///< by Meetings::last_ready()
  std::optional<double> expected_us;
};
Waits divide(const trace::Event& event, int rank, const Wait& wait);

/// µs of the transfer: from the moment when the last rank was ready, or of the whole operation on this rank where that
/// is not known; none where the source has no times of it.
std::optional<double> transfer_us(const trace::Event& event, const std::optional<Ready>& last);

}  // namespace medley::reconcile
