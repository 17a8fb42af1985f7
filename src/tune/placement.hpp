// All-gathers of facts about the ranks of a job, before anything is measured.
#pragma once

#include <sched.h>

#include <cstdint>
#include <medley/comm.hpp>
#include <string>
#include <type_traits>
#include <vector>

namespace medley::tune {

/// All-gathers a value: each rank's `mine`, by rank. Collective.
template <class T>
std::vector<T> gather_from_all(Comm comm, const T& mine) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::vector<T> all(static_cast<std::size_t>(comm.size()));
  comm.all_gather(ConstBuffer(&mine, sizeof mine, DType::u8),
                  Buffer(all.data(), static_cast<std::int64_t>(all.size() * sizeof mine), DType::u8));
  return all;
}

/// A rank's placement: its machine, and the cores it may use (none where there are more than a cpu_set_t holds).
struct Placement {
  std::size_t machine = 0;
  cpu_set_t cores{};
  bool operator==(const Placement& other) const { return machine == other.machine && CPU_EQUAL(&cores, &other.cores); }
};
/// The placement of every rank. Collective.
std::vector<Placement> placement_of_all(const Comm& comm);

/// What to change about the placement of ranks that communicate between hosts, in a sentence; empty: nothing. `hosts`:
/// of each rank. Where the ranks of a machine fill all its cores, the kernel's network work and the libraries' threads
/// take time from the ranks that others wait for (16 ranks of 4 hosts on 16 cores: a dense step over mpi took 3.2 ms,
/// and 10.6 where gloo with its threads was in use too).
std::string advice_on_cores(const std::vector<Placement>& all, const std::vector<int>& hosts);

}  // namespace medley::tune
