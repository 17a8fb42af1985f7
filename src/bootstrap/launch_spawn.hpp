// Starts one program in its own process group. Used by the launcher for each rank, or for mpirun.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include <medley/sdk/descriptor.hpp>

namespace medley {

/// The path of a command, as a shell would find it; throws Error of kind invalid when there is none.
std::string find_program(const std::string& command);

struct Spawn {
  std::string program;                             ///< a path
  std::vector<std::string> arguments;              ///< including argv[0]
  std::map<std::string, std::string> environment;  ///< the complete environment
  int in = 0, out = 1, err = 2;                    ///< become the child's standard streams
  bool own_group = true;                           ///< the child leads a process group of its own
  std::string cores = {};                          ///< the mask it is bound to; "": this process's
  /// Called with the child's pid before the program starts.
  std::function<void(pid_t)> prepared = {};
};

/// The child's pid, which is also its group's. Returns when the program runs; throws Error of kind invalid when it
/// cannot. The child is killed when this thread ends.
pid_t spawn(const Spawn& what);

/// This process's environment, to start from.
std::map<std::string, std::string> current_environment();

struct Pipe {
  Descriptor read, write;
};
Pipe make_pipe();  ///< both ends close on exec

}  // namespace medley
