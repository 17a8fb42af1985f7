// A supervisor process that outlives the launcher: when the launcher dies, even by SIGKILL, it kills
// the ranks' process groups. PR_SET_PDEATHSIG alone would miss processes that the ranks have started.
#pragma once

#include <sys/types.h>

#include <medley/sdk/descriptor.hpp>

namespace medley {

class Supervisor {
 public:
  Supervisor();
  /// Dismisses the supervisor: it exits without killing any group.
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;
  /// From now on `group` is killed when the launcher dies.
  void guard(pid_t group);

 private:
  Descriptor line_;
  pid_t pid_;
};

}  // namespace medley
