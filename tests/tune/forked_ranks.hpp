// Runs a function as several processes that share only what they open themselves, and returns those that
// failed. Used by the tests of the sample clock.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <functional>
#include <vector>

namespace medley::tune {

/// Calls `body(rank)` in one child per rank; true from all of them is success. Returns the ranks that failed.
inline std::vector<int> failed_forked_ranks(int ranks, const std::function<bool(int)>& body) {
  std::vector<pid_t> children;
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t child = fork();
    if (child == 0) {
      bool good = false;
      try {
        good = body(rank);
      } catch (const std::exception& error) {
        std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
      }
      _exit(good ? 0 : 1);
    }
    children.push_back(child);
  }
  std::vector<int> failed;
  for (int rank = 0; rank < ranks; ++rank) {
    int status = 0;
    const bool reaped = children[static_cast<std::size_t>(rank)] > 0 &&
                        waitpid(children[static_cast<std::size_t>(rank)], &status, 0) > 0;
    if (!reaped || !WIFEXITED(status) || WEXITSTATUS(status) != 0) failed.push_back(rank);
  }
  return failed;
}

}  // namespace medley::tune
