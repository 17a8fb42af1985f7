#include "job.hpp"

#include <algorithm>

namespace nb = nanobind;

namespace medley::python {
namespace {

using std::chrono::steady_clock;

// Interval of Ctrl-C checks: short for a person, long compared with taking the GIL.
constexpr std::chrono::milliseconds between_signals{50};

Context make_context(const ContextOptions& options) {
  const nb::gil_scoped_release released;
  return Context(options);
}

}  // namespace

Job::Job(const ContextOptions& options) : context(make_context(options)) {}

void Job::let_go_of_complete() {
  std::erase_if(pending_, [](const Pending& pending) { return pending.work.complete(); });
}

void Job::keep(Pending pending) {
  let_go_of_complete();
  pending_.push_back(std::move(pending));
}

void Job::synchronize() {
  while (!pending_.empty()) {
    Work work = pending_.front().work;  // another thread may change the list while this one waits
    if (!work.complete()) wait(work, forever);
    const Error* error = work.error();
    let_go_of_complete();
    if (error) throw Error(*error);
  }
}

bool wait(Work& work, std::chrono::nanoseconds at_most) {
  const auto until = steady_clock::now() + at_most;
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(until - steady_clock::now());
    {
      const nb::gil_scoped_release released;
      if (work.wait_for(
              std::clamp<std::chrono::nanoseconds>(left, std::chrono::nanoseconds{0}, between_signals)))
        return true;
    }
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (left <= between_signals) return false;
  }
}

}  // namespace medley::python
