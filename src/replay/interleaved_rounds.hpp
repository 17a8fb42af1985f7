// Interleaved rounds: every round runs a step of a schedule over each backend and, where a step is to be predicted from
// its parts, those parts too, so that noise affects all alike. Behind `medley replay`.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "replay/part_times.hpp"
#include "replay/predict.hpp"

namespace medley::replay {

class InterleavedRounds {
 public:
  /// Collective, as is run(); the arguments must outlive this object. `parts`: time them too.
  InterleavedRounds(Context& context, const WorldSchedule& schedule, const ReplayOptions& options,
                    const std::vector<std::string>& backends, bool parts);

  /// One step over each backend; the order differs in every round.
  void run(std::size_t round);

  /// µs of a step over each backend: the median of all rounds.
  std::map<std::string, double> step_us() const;
  /// µs of a step over each backend as predicted from its parts; empty where those were not measured.
  std::map<std::string, double> predicted_us() const;
  const Places& places() const { return places_; }

 private:
  std::vector<double> latest(std::vector<double> times);
  std::vector<double> from_last_to_last(const std::vector<std::optional<Span>>& mine);

  const WorldSchedule& schedule_;
  const ReplayOptions& options_;
  const std::vector<std::string>& backends_;
  Comm world_;
  Replayer replayer_;
  RankSchedule mine_;
  Places places_;
  std::vector<Meeting> order_;                              ///< empty: no parts
  std::vector<std::vector<double>> steps_us_;               ///< by backend
  std::vector<std::vector<std::vector<double>>> parts_us_;  ///< by backend and round
};

}  // namespace medley::replay
