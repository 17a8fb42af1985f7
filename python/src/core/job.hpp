// What medley._core's objects share: the context, the operations whose arrays must stay alive, and waiting
// that lets go of the GIL and listens to Ctrl-C.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include <medley/medley.hpp>

#include "array.hpp"

namespace medley::python {

/// A pending operation and the arrays it uses.
struct Pending {
  Work work;
  std::vector<Array> arrays;
};

/// A context and what is pending in it. All members need the GIL.
class Job {
 public:
  explicit Job(const ContextOptions& options);

  /// Keeps an operation's arrays until it is complete, whether or not the caller keeps its Work.
  void keep(Pending pending);
  /// Waits for everything issued so far.
  void synchronize();

  Context context;

 private:
  void let_go_of_complete();
  std::vector<Pending> pending_;
};

/// What the caller of an async operation holds.
struct WorkHandle {
  Work work;
  std::shared_ptr<Job> job;
};

/// Waits without the GIL; False when `at_most` passed first. Raises KeyboardInterrupt, or what another
/// signal's handler raises, and leaves the operation pending then.
bool wait(Work& work, std::chrono::nanoseconds at_most);

constexpr std::chrono::nanoseconds forever = std::chrono::hours(24 * 365);

}  // namespace medley::python
