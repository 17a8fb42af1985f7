// Shared by medley._core's objects: the context, the operations whose arrays must stay alive, and waiting
// that releases the GIL and handles Ctrl-C.
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
  std::shared_ptr<ErrorFeedback> feedback{};
};

/// A context and its pending operations. All members need the GIL.
class Job {
 public:
  explicit Job(const ContextOptions& options);

  /// Keeps an operation's arrays alive until it completes, whether or not the caller keeps its Work.
  void keep(Pending pending);
  /// Waits for everything issued so far.
  void synchronize();

  Context context;

 private:
  void let_go_of_complete();
  std::vector<Pending> pending_;
};

/// The handle that the caller of an async operation gets.
struct WorkHandle {
  Work work;
  std::shared_ptr<Job> job;
};

/// Waits without the GIL; false when `at_most` passes first. Raises KeyboardInterrupt, or what another signal
/// handler raises; the operation then stays pending.
bool wait(Work& work, std::chrono::nanoseconds at_most);

constexpr std::chrono::nanoseconds forever = std::chrono::hours(24 * 365);

}  // namespace medley::python
