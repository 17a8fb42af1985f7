// Decides in a running job which routes to measure again and when to switch (docs/online-routes.md).
// Every rank of a comm has one and feeds it the same agreed numbers, so all decide alike; it therefore reads no clock
// and calculates in integers.
#pragma once

#include <cstdint>
#include <deque>
#include <medley/export.hpp>
#include <vector>

namespace medley::route {

/// One operation, class of element types and range of sizes on one comm, with the routes it may take.
struct OnlineSlot {
  /// Of each candidate, by the table; the first candidate is the table's choice
  std::vector<std::int64_t> expected_ns{};
  /// Bit per candidate: the table cannot tell whether it is slower than its choice
  std::uint32_t tied = 0;
};

/// An operation of a window that every rank times.
struct TimedOperation {
  std::uint32_t slot = 0;
  std::uint32_t occurrence = 0;  ///< the n-th operation of its slot in the window
  std::uint8_t candidate = 0;
  std::uint32_t trial = 0;       ///< number of the trial that it belongs to; 0: it times the route in use
  std::int64_t reserved_ns = 0;  ///< of the budget
};

/// Routes of the operations of one window.
struct WindowPlan {
  std::vector<std::uint8_t> current{};  ///< candidate of each slot
  std::vector<TimedOperation> timed{};  ///< at most most_timed
  std::uint64_t switches = 0;           ///< how often routes had been switched
};

/// What the ranks agreed on about a window.
struct WindowResult {
  std::int64_t elapsed_ns = 0;
  std::int64_t expected_ns = 0;          ///< its operations together, by the table
  std::vector<std::int64_t> times_ns{};  ///< of each timed operation; negative: not known
};

/// Why candidates were tried.
enum class TrialCause : std::uint8_t { unsure, unlike_table, drift, recheck, shuffle };

struct TrialOutcome {
  enum class Result : std::uint8_t { switched, kept, reverted };
  Result result{};
  TrialCause cause{};
  std::uint32_t slot = 0;
  std::uint8_t from = 0, to = 0;  ///< candidates; where the route was kept, `to` is the one tried last
  /// When the cause arose: the usual time of the route in use, and what it took
  std::int64_t before_ns = 0, seen_ns = 0;
  /// medians; of a reverted switch: the window's time per expected microsecond
  std::int64_t from_ns = 0, to_ns = 0;
  int faster = 0, measured = 0;  ///< measurements of the candidate that were clearly faster, and all
  std::int64_t begun_ns = 0;     ///< when the cause arose, on the agreed clock
};

class MEDLEY_API OnlineDecider {
 public:
  static constexpr std::size_t most_timed = 64;
  static constexpr std::uint64_t lag = 3;  ///< a window's result is taken before this many windows later

  enum class Mode : std::uint8_t { measure, shuffle };
  /// `shuffle`, for tests: the agreed numbers pick random routes in every window.
  explicit OnlineDecider(std::vector<OnlineSlot> slots, Mode mode = Mode::measure);

  /// The plan of the next window. `counts`: operations of each slot in the last window that was issued completely.
  WindowPlan plan(const std::vector<std::uint32_t>& counts);
  /// Takes the results in order of the windows.
  std::vector<TrialOutcome> take(const WindowPlan& planned, const WindowResult& result);

 private:
  struct Trial {
    std::uint32_t number = 0;  ///< 0: none under way
    TrialCause cause{};
    std::int64_t before_ns = 0, seen_ns = 0;  ///< when the cause arose
    std::int64_t begun = 0;                   ///< then, on the agreed clock
    std::uint8_t candidate = 0;
    std::vector<std::uint8_t> next{};  ///< candidates to try after it
    int in_flight = 0;                 ///< planned, without a result
    bool warm = false;                 ///< its first operation, which may connect, is over
    int faster = 0, slower = 0;
    std::vector<std::int64_t> times{};
  };
  struct SlotState {
    std::uint8_t current = 0;
    std::int64_t usual_ns = 0;  ///< of the route in use; 0: not known since the last switch
    bool usual_by_table = true;
    std::int64_t latest_ns = 0;
    int drifting = 0, steady = 0;  ///< windows in a row
    int rounds = 0;                ///< of trials since the drift
    Trial trial{};
    std::int64_t pause_ns = 0, no_trial_before = 0;
    std::int64_t recheck_pause_ns = 0, recheck_at = 0;
    /// Of each candidate to the route in use, when last tried; 0: not since it changed
    std::vector<std::int64_t> ratio_permille{};
    std::vector<std::int64_t> banned_until{};  ///< candidates whose switch was reverted
  };
  struct Pace {
    /// On the agreed clock; a window's time per microsecond that the table expects
    std::int64_t at = 0, ns = 0;
  };
  struct Verification {  ///< of the latest switches, by the time of whole windows
    std::vector<TrialOutcome> switched{};
    std::int64_t begun = 0, pace_before = 0;
  };

  void time_slot(std::uint32_t slot, std::uint32_t count, WindowPlan& plan);
  std::int64_t extra_ns(const SlotState& state, const OnlineSlot& slot) const;
  void settle_slot(std::uint32_t slot, const WindowPlan& planned, const WindowResult& result, std::size_t first,
                   std::size_t end, std::vector<TrialOutcome>& decided);
  void look_for_cause(std::uint32_t slot);
  void begin_trials(std::uint32_t slot, TrialCause cause, std::vector<std::uint8_t> candidates);
  void next_trial(std::uint32_t slot);
  void judge_trial(std::uint32_t slot, std::vector<TrialOutcome>& decided);
  TrialOutcome outcome(std::uint32_t slot, TrialOutcome::Result result) const;
  void switch_to(std::uint32_t slot, std::uint8_t candidate);
  std::int64_t pace_since(std::int64_t begin) const;
  void verify(const WindowPlan& planned, const WindowResult& result, std::vector<TrialOutcome>& decided);
  void shuffle(const WindowResult& result);

  std::vector<OnlineSlot> slots_;
  std::vector<SlotState> states_;
  Mode mode_;
  std::uint64_t windows_ = 0;  ///< planned so far
  std::uint64_t switches_ = 0;
  std::uint32_t trials_ = 0;
  std::int64_t now_ns_ = 0;  ///< the agreed clock: the windows' times added up
  std::int64_t budget_ns_ = 0;
  std::deque<Pace> paces_{};  ///< of the latest windows with these routes
  Verification verification_{};
};

}  // namespace medley::route
