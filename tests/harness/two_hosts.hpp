// Runs a function on two hosts of two ranks each: mount namespaces with their own /dev/shm count as hosts. Needs
// permission to make namespaces (root) and a network besides loopback.
#pragma once

#include <ifaddrs.h>
#include <net/if.h>
#include <sched.h>
#include <sys/mount.h>

#include <algorithm>

#include "harness/ranks.hpp"

namespace medley::test {

inline constexpr int hosts = 2, places = 2, ranks_on_hosts = hosts * places, may_not = 77;

inline bool become_host() {
  return unshare(CLONE_NEWNS) == 0 && mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=64m") == 0;
}

inline int run_rank_on_host(int rank, const ForkedStore& store, const std::vector<std::string>& backends,
                            const Body& body) {
  try {
    ContextOptions options = options_of(rank, ranks_on_hosts, store.connect(rank, ranks_on_hosts));
    options.backends = backends;
    Context context(options);
    body(context);
    return ::testing::Test::HasFailure() ? 1 : 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
    return 2;
  }
}

/// gloo does not use loopback between hosts, and these share a network: any other interface works.
inline bool name_interface() {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return false;
  bool found = false;
  for (const ifaddrs* one = all; one && !found; one = one->ifa_next) {
    if (!one->ifa_addr || one->ifa_addr->sa_family != AF_INET || !(one->ifa_flags & IFF_UP) ||
        (one->ifa_flags & IFF_LOOPBACK))
      continue;
    found = setenv("MEDLEY_GLOO_INTERFACE", one->ifa_name, 1) == 0;
  }
  freeifaddrs(all);
  return found;
}

/// False where this user may not create namespaces, or there is no network.
inline bool on_two_hosts(const std::vector<std::string>& backends, const Body& body) {
  if (!name_interface()) return false;
  ForkedStore store;
  std::fflush(nullptr);
  std::vector<pid_t> made;
  for (int host = 0; host < hosts; ++host) {
    const pid_t keeper = fork();
    if (keeper > 0) {
      made.push_back(keeper);
      continue;
    }
    if (!become_host()) _exit(may_not);
    int worst = 0;
    std::vector<pid_t> children;
    for (int place = 0; place < places; ++place) {
      const pid_t child = fork();
      if (child == 0) {
        const int status = run_rank_on_host(host * places + place, store, backends, body);
        std::fflush(nullptr);
        _exit(status);
      }
      children.push_back(child);
    }
    for (const pid_t child : children) {
      int status = 0;
      waitpid(child, &status, 0);
      worst = std::max(worst, WIFEXITED(status) ? WEXITSTATUS(status) : 3);
    }
    _exit(worst);
  }
  store.open();
  bool may = true;
  for (const pid_t keeper : made) {
    int status = 0;
    waitpid(keeper, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == may_not) {
      may = false;
    } else {
      EXPECT_EQ(status, 0);
    }
  }
  return may;
}

inline constexpr const char* no_hosts = "this user may not make namespaces, or there is no network but loopback";

}  // namespace medley::test
