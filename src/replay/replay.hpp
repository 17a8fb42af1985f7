// Runs a schedule on the runtime: real buffers, real operations, computation as elapsed time, overlap as planned. Used
// by `medley replay` on every rank.
#pragma once

#include <functional>
#include <medley/medley.hpp>
#include <optional>
#include <string>
#include <vector>

#include "replay/meeting.hpp"
#include "replay/schedule_file.hpp"

namespace medley::replay {

/// Which backend carries an operation, and by which of its algorithms; empty: the runtime's own choice.
struct Via {
  std::string_view backend{}, algorithm{};
};
using Router = std::function<Via(const Action&)>;

struct ReplayOptions {
  double scale = 1;          ///< of all sizes and times
  double tflops = 0;         ///< how fast computation is; 0: it takes no time
  double memory_gbs = 1000;  ///< bandwidth of its memory-bound parts
  bool by_machine = true;    ///< where the schedule has times for a machine, use those instead
};

/// µs on the machine's clock.
struct Span {
  double begin_us = 0, end_us = 0;
};
double machine_clock_us();

class Replayer {
 public:
  /// Makes the comms of the schedule, on all ranks together, and the buffers.
  Replayer(Context& context, const WorldSchedule& schedule, const ReplayOptions& options);
  ~Replayer();

  /// Runs one step, after a barrier under the scope "step". Returns when it began and ended on this rank.
  Span step(const Router& route);
  /// The same without the barrier: returns when this rank has seen all its operations complete.
  void run(const Router& route);

  /// Runs the operations of a step in isolation: the same comms, buffers and sizes, in this order, but one at a time,
  /// its ranks starting together. Returns when each began and ended on this rank; none where it takes no part. Recorded
  /// under "step".
  std::vector<std::optional<Span>> time_alone(const std::vector<Meeting>& order, const Router& route);

 private:
  class Pool;
  struct Pending;
  Work issue(const Action& action, const Router& route, Pending& pending);
  std::size_t issue_batch(std::size_t first, const Router& route);
  void wait_for(int token);
  void line_up(const Action& action, bool all);
  void wait_aside();
  int peer_of(const Action& action) const;
  Comm& comm_of(const Action& action);

  Comm world_;
  RankSchedule schedule_;
  ReplayOptions options_;
  std::map<std::string, Comm> comms_;
  std::unique_ptr<Pool> pool_;
  std::vector<Pending> pending_;
};

}  // namespace medley::replay
