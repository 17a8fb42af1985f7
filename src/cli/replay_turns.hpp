// Steps of a schedule over each backend by turns, and, where a step is to be predicted from its parts, these
// before it, so that what else the machine does hits both alike. Behind `medley replay`.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "replay/part_times.hpp"
#include "replay/predict.hpp"

namespace medley::cli {

class ReplayTurns {
 public:
  /// Collective, as is take(); what is given must outlive this. `parts`: time them too.
  ReplayTurns(Context& context, const replay::WorldSchedule& schedule, const replay::ReplayOptions& options,
              const std::vector<std::string>& backends, bool parts);

  /// One step over each backend, in an order of its own.
  void take(std::size_t round);

  /// µs of a step over each backend: the middle of all rounds.
  std::map<std::string, double> took() const;
  /// What the times of its parts make of it; empty where they were not taken.
  std::map<std::string, double> by_parts() const;
  const replay::Places& places() const { return places_; }

 private:
  std::vector<double> latest(std::vector<double> times);
  std::vector<double> from_last_to_last(const std::vector<std::optional<replay::Span>>& mine);

  const replay::WorldSchedule& schedule_;
  const replay::ReplayOptions& options_;
  const std::vector<std::string>& backends_;
  Comm world_;
  replay::Replayer replayer_;
  replay::RankSchedule mine_;
  replay::Places places_;
  std::vector<replay::Meeting> order_;                      ///< empty: no parts
  std::vector<std::vector<double>> steps_us_;               ///< of each backend
  std::vector<std::vector<std::vector<double>>> parts_us_;  ///< of each backend and round
};

}  // namespace medley::cli
