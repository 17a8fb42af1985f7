// The supervisor's side of wrong programs: which rank must report what, and by when.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "base/ticks.hpp"
#include "soak/invalid.hpp"
#include "soak/ranks_job.hpp"
#include "soak/soak.hpp"

namespace medley::soak {
namespace {

using std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto time_to_start = 60s;  // mpirun on a busy machine takes seconds

bool takes_the_rank(Fault fault) { return fault == Fault::killed || fault == Fault::stopped; }

/// A rank that stops making progress may have sent all its data before.
bool may_go_well(const InvalidPlan& plan) { return plan.fault == Fault::late && plan.async; }

bool right_kind(Fault fault, int kind) {
  const auto is = [kind](ErrorKind wanted) { return kind == static_cast<int>(wanted); };
  if (fault == Fault::killed) return is(ErrorKind::rank_lost);
  if (fault == Fault::stopped) return is(ErrorKind::rank_lost) || is(ErrorKind::timeout);
  if (fault == Fault::aborted) return is(ErrorKind::aborted);
  if (fault == Fault::late) return is(ErrorKind::timeout);
  return is(ErrorKind::mismatch);
}

class InvalidWatch {
 public:
  InvalidWatch(int ranks, const WorkerOptions& options) : ranks_(ranks), options_(options), report_(ranks) {}

  /// Empty when every live rank reported the right error in time.
  std::string run(std::uint64_t seed) {
    plan_ = plan_invalid(seed, ranks_, options_.generate.libraries());
    WorkerOptions work = options_;
    work.first = seed;
    work.programs = 1;
    work.seconds = 0;
    report_.clear();
    std::vector<std::string> words = worker_words(work);
    words.push_back("--invalid");
    RanksJob job(ranks_, words, fmt::format("{}", fmt::join(options_.generate.backends, ",")), report_);
    const auto begun = steady_clock::now();
    while (!all_ready() && steady_clock::now() - begun < time_to_start && !job.ended()) usleep(1000);
    if (!all_ready()) return fmt::format("the ranks did not come to the fault: {}", reports() + job.output());
    std::int64_t fault_at = 0;
    for (int r = 0; r < ranks_; ++r) fault_at = std::max<std::int64_t>(fault_at, report_[r].ready_ns);
    const std::int64_t allowed = time_allowed(plan_.fault, options_.deadline).count();
    while (!all_reported() &&
           core::clock_ns(CLOCK_MONOTONIC) <
               fault_at + allowed + std::chrono::nanoseconds(survives(plan_.fault) ? 10s : 1s).count())
      usleep(1000);
    return judge(fault_at, allowed);
  }
  const InvalidPlan& plan() const { return plan_; }

 private:
  bool lives(int r) const { return !takes_the_rank(plan_.fault) || r != plan_.victim; }
  bool all_ready() const {
    for (int r = 0; r < ranks_; ++r) {
      if (report_[r].ready_ns == 0) return false;
    }
    return true;
  }
  bool all_reported() const {
    for (int r = 0; r < ranks_; ++r) {
      if (lives(r) && report_[r].reported == Reported::nothing && !(may_go_well(plan_) && report_[r].finished == 1))
        return false;
    }
    return true;
  }
  std::string reports() const {
    std::string text;
    for (int r = 0; r < ranks_; ++r) {
      if (report_[r].reported != Reported::nothing) text += fmt::format("rank {}: {}\n", r, report_[r].text);
    }
    return text;
  }
  std::string judge(std::int64_t fault_at, std::int64_t allowed) const {
    std::string wrong;
    for (int r = 0; r < ranks_; ++r) {
      if (!lives(r)) continue;
      const Slot& slot = report_[r];
      const std::int64_t noticed = slot.noticed_ns > 0 ? slot.noticed_ns : slot.reported_ns;
      if (slot.reported == Reported::nothing && slot.finished == 1 && may_go_well(plan_)) continue;
      if (slot.reported == Reported::nothing) {
        wrong += fmt::format("rank {} {}\n", r, slot.finished == 1 ? "noticed nothing" : "reported no error in time");
      } else if (noticed > fault_at + allowed) {
        wrong +=
            fmt::format("rank {} reported an error after {:.1f} s, not {:.1f}: {}\n", r,
                        static_cast<double>(noticed - fault_at) * 1e-9, static_cast<double>(allowed) * 1e-9, slot.text);
      } else if (!right_kind(plan_.fault, slot.error_kind)) {
        wrong += fmt::format("rank {} reported the wrong error: {}\n", r, slot.text);
      }
    }
    return wrong;
  }

  int ranks_;
  const WorkerOptions& options_;
  Report report_;
  InvalidPlan plan_;
};

}  // namespace

std::chrono::nanoseconds time_allowed(Fault fault, std::chrono::nanoseconds deadline) {
  // A death is detected within a second, any other fault within the deadline plus one second. A death is
  // allowed two seconds, because the machine may be busy and this test does not judge its scheduler.
  return fault == Fault::killed ? std::chrono::nanoseconds(2s) : deadline + 1s;
}

InvalidOutcome soak_invalid(int ranks, const WorkerOptions& options,
                            const std::function<void(const InvalidFailure&)>& failed) {
  InvalidOutcome outcome;
  if (ranks < 2) return outcome;  // no rank is left to report
  InvalidWatch watch(ranks, options);
  const auto begun = steady_clock::now();
  const auto time_left = [&] {
    return options.seconds <= 0 || steady_clock::now() - begun < std::chrono::duration<double>(options.seconds);
  };
  for (; outcome.programs < options.programs && time_left(); ++outcome.programs) {
    const std::uint64_t seed = options.first + static_cast<std::uint64_t>(outcome.programs);
    const std::string wrong = watch.run(seed);
    if (wrong.empty()) continue;
    outcome.failures.push_back({seed, to_text(watch.plan()), wrong});
    failed(outcome.failures.back());
  }
  return outcome;
}

}  // namespace medley::soak
