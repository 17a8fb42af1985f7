// A small process that outlives the launcher by a moment: when the launcher dies, even by SIGKILL, it ends
// the ranks' process groups. PR_SET_PDEATHSIG alone would miss what the ranks themselves have started.
#pragma once

#include <sys/types.h>

#include <medley/sdk/descriptor.hpp>

namespace medley {

class Supervisor {
 public:
  Supervisor();
  /// Dismisses the supervisor: it leaves without ending anyone.
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;
  /// From now on `group` ends when the launcher does.
  void guard(pid_t group);

 private:
  Descriptor line_;
  pid_t pid_;
};

}  // namespace medley
