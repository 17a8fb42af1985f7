// Programs that are wrong on purpose, or lose a rank midway: every live rank must report the right error in
// time.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "soak/report.hpp"
#include "soak/worker.hpp"

namespace medley::soak {

enum class Fault : std::uint8_t {
  skipped_collective,
  wrong_root,
  swapped_order,
  other_count,
  other_type,
  killed,      ///< SIGKILL midway
  stopped,     ///< SIGSTOP midway
  aborted,     ///< another rank aborts the comm while the victim's data is in flight
  late,        ///< the victim arrives, or progresses its data, after the deadline of the others
  other_size,  ///< on a comm with exact sizes: the victim's message has another size than its receive
};
inline constexpr int fault_count = 9;  ///< of those that are drawn alike; some programs are changed to the last one
std::string_view name(Fault fault);

/// The fault and where it happens: a pure function of the seed, the number of ranks and the backends.
struct InvalidPlan {
  std::uint64_t seed = 0;
  Fault fault{};
  int victim = 0;
  int before = 0;  ///< successful collectives before the fault
  std::string backend{};
  bool async = false;
  std::int64_t count = 1;  ///< elements per operation
  /// bf16, which libraries do not reduce themselves: the data passes through Medley's own scratch memory
  bool filled_in = false;
  bool checked = true;  ///< in check mode
  std::string rules{};  ///< of other_size: the two sizes may lead to two backends
};
InvalidPlan plan_invalid(std::uint64_t seed, int ranks, const std::vector<std::string>& backends);
std::string to_text(const InvalidPlan& plan);

/// Whether other comms keep working after this fault.
bool survives(Fault fault);

/// Runs the plan on one of `ranks` ranks and records in the slot the error it ended with.
void work_invalid(const WorkerOptions& options, int ranks, Slot& slot);

/// How long live ranks have to report the error, counted from the fault.
std::chrono::nanoseconds time_allowed(Fault fault, std::chrono::nanoseconds deadline);

struct InvalidFailure {
  std::uint64_t program = 0;
  std::string plan{}, text{};
};
struct InvalidOutcome {
  std::int64_t programs = 0;
  std::vector<InvalidFailure> failures{};
};

/// Runs `programs` wrong programs, each on fresh ranks, and compares the errors of the live ranks with the
/// expected ones.
InvalidOutcome soak_invalid(int ranks, const WorkerOptions& options,
                            const std::function<void(const InvalidFailure&)>& failed);

}  // namespace medley::soak
