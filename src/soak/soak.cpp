#include "soak/soak.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>

#include "soak/ideal_machine.hpp"
#include "soak/oracle.hpp"
#include "soak/ranks_job.hpp"
#include "soak/shrink.hpp"

namespace medley::soak {
namespace {

using std::chrono::steady_clock;
using namespace std::chrono_literals;

// On top of the ranks' own deadline: only a hang outside of Medley's own waits reaches it.
constexpr auto last_patience = 10s;
// Time for the other ranks to report once one has reported a failure.
constexpr auto time_to_speak = 300ms;
// A program that hung is rerun with a shorter deadline; most take milliseconds.
constexpr auto shrink_deadline = 5s;
// Runs of a candidate before it counts as passing: many failures depend on timing.
constexpr int tries = 3;

struct Watched {
  std::int64_t done = 0;             ///< programs that passed on all ranks
  std::optional<Failure> failure{};  ///< of the program after those
};

class Watch {
 public:
  Watch(const SoakOptions& options, Report& report, const std::function<void(std::int64_t)>& progress)
      : options_(options), report_(report), progress_(progress) {}

  /// Runs programs on fresh ranks until all are done or one fails.
  Watched run(const WorkerOptions& work) {
    report_.clear();
    RanksJob job(options_.ranks, worker_words(work), fmt::format("{}", fmt::join(work.generate.backends, ",")),
                 report_);
    auto last_change = steady_clock::now();
    std::int64_t seen = 0;
    for (;;) {
      if (any_reported()) {
        usleep(static_cast<useconds_t>(std::chrono::microseconds(time_to_speak).count()));
        return failed(work, Failure::What::mismatch, reports());
      }
      if (const auto status = job.ended()) {
        if (*status == 0 && all_through()) return {least(&Slot::finished), {}};
        return failed(work, Failure::What::mismatch,
                      fmt::format("the ranks ended with status {}: {}", *status, job.output()));
      }
      if (const std::int64_t now = changes(); now != seen) {
        seen = now;
        last_change = steady_clock::now();
        progress_(least(&Slot::finished));
      }
      if (steady_clock::now() - last_change > work.deadline + last_patience) {
        return failed(work, Failure::What::hang,
                      fmt::format("nothing moved for {} s", (work.deadline + last_patience) / 1s));
      }
      usleep(2000);
    }
  }

 private:
  std::int64_t least(std::atomic<std::int64_t> Slot::*field) const {
    std::int64_t value = (report_[0].*field).load();
    for (int r = 1; r < options_.ranks; ++r) value = std::min(value, (report_[r].*field).load());
    return value;
  }
  std::int64_t changes() const {
    std::int64_t sum = 0;
    for (int r = 0; r < options_.ranks; ++r) sum += report_[r].started + report_[r].finished;
    return sum;
  }
  bool all_through() const {
    for (int r = 0; r < options_.ranks; ++r) {
      if (report_[r].through != 1) return false;
    }
    return true;
  }
  bool any_reported() const {
    for (int r = 0; r < options_.ranks; ++r) {
      if (report_[r].reported != Reported::nothing) return true;
    }
    return false;
  }
  std::string reports() const {
    std::string text;
    for (int r = 0; r < options_.ranks; ++r) {
      if (report_[r].reported != Reported::nothing)
        text += fmt::format("{}rank {}: {}", text.empty() ? "" : "\n", r, report_[r].text);
    }
    return text;
  }
  /// A hang is when the only errors are timeouts; wrong memory or any other error is a mismatch.
  bool only_timeouts() const {
    for (int r = 0; r < options_.ranks; ++r) {
      if (report_[r].reported == Reported::mismatch) return false;
      if (report_[r].reported == Reported::error && report_[r].error_kind == static_cast<int>(ErrorKind::timeout))
        return true;
    }
    return false;
  }
  Watched failed(const WorkerOptions& work, Failure::What what, const std::string& text) const {
    const std::int64_t done = least(&Slot::finished);
    if (only_timeouts()) what = Failure::What::hang;
    return {done, Failure{what, work.first + static_cast<std::uint64_t>(done), text, {}}};
  }

  const SoakOptions& options_;
  Report& report_;
  const std::function<void(std::int64_t)>& progress_;
};

class Shrinker {
 public:
  Shrinker(const SoakOptions& options, Watch& watch, steady_clock::time_point until)
      : options_(options), watch_(watch), until_(until) {}

  void run(Failure& failure) {
    const Program whole = generate(failure.program, options_.ranks, options_.work.generate);
    const auto fails = [&](const std::vector<int>& left_out) { return fails_without(whole, failure, left_out); };
    const auto enough = [&] { return steady_clock::now() > until_; };
    if (!enough()) failure.left_out = shrink(static_cast<int>(whole.steps.size()), fails, enough);
  }

 private:
  bool fails_without(const Program& whole, Failure& failure, const std::vector<int>& left_out) {
    const Program program = without(whole, left_out);
    if (!run_ideal(program).finishes || !expect(program)) return false;
    WorkerOptions work = options_.work;
    work.first = failure.program;
    work.programs = 1;
    work.without = left_out;
    work.deadline = std::min<std::chrono::nanoseconds>(work.deadline, shrink_deadline);
    for (int i = 0; i < tries; ++i) {
      const Watched seen = watch_.run(work);
      if (!seen.failure || seen.failure->what != failure.what) continue;
      failure.text = seen.failure->text;
      return true;
    }
    return false;
  }

  const SoakOptions& options_;
  Watch& watch_;
  steady_clock::time_point until_;
};

}  // namespace

std::vector<std::string> worker_words(const WorkerOptions& options) {
  std::vector<std::string> words{"soak",
                                 "--seed",
                                 std::to_string(options.first),
                                 "--programs",
                                 std::to_string(options.programs),
                                 "--backends",
                                 fmt::format("{}", fmt::join(options.generate.backends, ",")),
                                 "--deadline",
                                 fmt::format("{}", std::chrono::duration<double>(options.deadline).count())};
  if (options.generate.online) words.emplace_back("--online");
  if (options.generate.memory == Memory::cuda) words.insert(words.end(), {"--memory", "cuda"});
  if (options.seconds > 0) words.insert(words.end(), {"--seconds", fmt::format("{}", options.seconds)});
  if (!options.without.empty())
    words.insert(words.end(), {"--without", fmt::format("{}", fmt::join(options.without, ","))});
  return words;
}

Outcome soak(const SoakOptions& options, const std::function<void(std::int64_t)>& progress,
             const std::function<void(const Failure&)>& failed) {
  Outcome outcome;
  Report report(options.ranks);
  const auto so_far = [&](std::int64_t done) { progress(outcome.programs + done); };
  const std::function<void(std::int64_t)> tell = so_far;
  Watch watch(options, report, tell);
  const auto begun = steady_clock::now();
  auto shrink_left = std::chrono::duration_cast<steady_clock::duration>(options.shrink_time);
  WorkerOptions work = options.work;
  while (outcome.programs < options.work.programs) {
    work.first = options.work.first + static_cast<std::uint64_t>(outcome.programs);
    work.programs = options.work.programs - outcome.programs;
    if (options.work.seconds > 0) {
      work.seconds = options.work.seconds - std::chrono::duration<double>(steady_clock::now() - begun).count();
      if (work.seconds <= 0) break;
    }
    Watched seen = watch.run(work);
    outcome.programs += seen.done;
    if (!seen.failure) break;  // finished, or out of time
    ++outcome.programs;
    const auto shrink_begun = steady_clock::now();
    const std::function<void(std::int64_t)> silent = [](std::int64_t) {};
    Watch quiet(options, report, silent);
    Shrinker(options, quiet, shrink_begun + shrink_left).run(*seen.failure);
    shrink_left = std::max<steady_clock::duration>(shrink_left - (steady_clock::now() - shrink_begun), 0s);
    failed(*seen.failure);
    outcome.failures.push_back(*seen.failure);
  }
  return outcome;
}

}  // namespace medley::soak
