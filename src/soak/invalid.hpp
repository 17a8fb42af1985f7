// Programs that are wrong on purpose, or lose a rank in the middle: every live rank must be told so, in the
// right words and in time.
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
  killed,   ///< SIGKILL in the middle
  stopped,  ///< SIGSTOP in the middle
  aborted,  ///< another rank aborts the comm while the victim's data is on its way
  late,     ///< the victim comes, or moves its data on, after the deadline of the others
};
inline constexpr int fault_count = 9;
std::string_view name(Fault fault);

/// What goes wrong where: a pure function of the seed, the number of ranks and the backends.
struct InvalidPlan {
  std::uint64_t seed = 0;
  Fault fault{};
  int victim = 0;
  int before = 0;  ///< collectives that go well first
  std::string backend{};
  bool async = false;
  std::int64_t count = 1;  ///< elements of each operation
  bool filled_in = false;  ///< of bf16, which libraries do not reduce themselves, through scratch memory of Medley's own
  bool checked = true;     ///< in check mode
};
InvalidPlan plan_invalid(std::uint64_t seed, int ranks, const std::vector<std::string>& backends);
std::string to_text(const InvalidPlan& plan);

/// Whether other comms go on after it.
bool survives(Fault fault);

/// On one of `ranks` ranks: runs it and tells in the slot with which error it ended.
void work_invalid(const WorkerOptions& options, int ranks, Slot& slot);

/// How long live ranks have to speak, from the moment of the fault.
std::chrono::nanoseconds time_allowed(Fault fault, std::chrono::nanoseconds deadline);

struct InvalidFailure {
  std::uint64_t program = 0;
  std::string plan{}, text{};
};
struct InvalidOutcome {
  std::int64_t programs = 0;
  std::vector<InvalidFailure> failures{};
};

/// Runs `programs` of them, each on fresh ranks, and compares what the live ranks say with what they must.
InvalidOutcome soak_invalid(int ranks, const WorkerOptions& options,
                            const std::function<void(const InvalidFailure&)>& failed);

}  // namespace medley::soak
