// Expected against observed time: what each operation of a step takes beside what the links or a route table promise,
// and why the program waited for it. What `medley reconcile --machine` and `--table` add to the comparison.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "reconcile/expectation.hpp"
#include "reconcile/observed.hpp"
#include "reconcile/time_model.hpp"
#include "reconcile/wait_causes.hpp"

namespace medley::reconcile {

/// Operations that are equal in op, group, size, phase, and layers that behave alike.
struct TimeRow {
  Op op = Op::all_reduce;
  std::string group;
  int group_size = 0;                    ///< 0: not known
  std::vector<std::vector<int>> only{};  ///< the groups of this name that the row is about; empty: all of them
  std::optional<std::int64_t> bytes{};   ///< none: the source has no sizes
  std::string phase{};
  std::int64_t first_layer = -1, last_layer = -1;  ///< -1: outside the layers, or not known
  double count = 0;                                ///< in a step of a rank that takes part
  std::optional<double> expected_us{};             ///< of one operation
  std::optional<double> observed_us{};             ///< median; of the transfer
  std::optional<double> slowest_us{};              ///< the largest observed one
  /// observed_us contains waiting for other ranks: when they came is not known
  bool with_waiting = false;
  std::optional<double> of_link{};  ///< achieved share of the link's bandwidth
  // Of a step, mean over all ranks.
  std::optional<double> exposed_us{};  ///< none: the source does not say when the program waited
  Waits waits{};                       ///< adds up to exposed_us
  std::map<int, double> late{};        ///< µs by the rank that others waited for
  std::string behind{};                ///< what most of the queueing was for
};

/// One cause of lost time.
struct TimeFinding {
  WaitCause cause = WaitCause::unknown;
  double us = 0;        ///< exposed in a step, mean over all ranks
  bool exposed = true;  ///< false: how much of it was exposed is not known
  std::string sentence;
};

struct TimeReport {
  std::string source;  ///< of the expected times
  std::size_t ranks = 0, steps = 0;
  double step_us = 0;                 ///< mean; 0: not known
  std::vector<TimeRow> rows;          ///< the most exposed first
  std::vector<TimeFinding> findings;  ///< worst first
  std::vector<std::string> remarks;   ///< what could not be known, and why
  std::optional<double> exposed_us() const;
  Waits waits() const;
};

TimeReport compare_times(const trace::Trace& trace, const Expectation& expectation, const Selection& selection,
                         Fields ignored, TimeModel model);

/// One sentence per cause of a row, and per late rank; the worst first.
std::vector<TimeFinding> time_findings(const std::vector<TimeRow>& rows);

}  // namespace medley::reconcile
