// How long an observed operation should take: on the links of a machine, by the cost model, or over the routes of a
// measured table.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cost/machine.hpp"
#include "replay/predict.hpp"
#include "trace/trace.hpp"

namespace medley::reconcile {

class TimeModel {
 public:
  /// The hosts of ranks come from the trace, where it knows them. With both a machine and a table, times are the
  /// table's where it has the operation. The trace must outlive this object.
  TimeModel(const trace::Trace& trace, std::optional<cost::Machine> machine, std::optional<route::Table> table,
            std::string table_name = "");
  TimeModel(TimeModel&&) = default;

  /// µs from the moment when all of `who`, world ranks, have called the operation; none: not known.
  std::optional<double> expected_us(const trace::Event& event, const std::vector<int>& who);
  /// µs that the bytes take at the full bandwidth of the machine's links; none without a machine.
  std::optional<double> at_full_bandwidth_us(const trace::Event& event, const std::vector<int>& who) const;

  /// "dgx-h100", "routes.json", or both.
  std::string source() const;
  const std::vector<std::string>& remarks() const { return remarks_; }

 private:
  void place_ranks(const trace::Trace& trace);
  std::vector<int> placed(const std::vector<int>& who) const;
  std::optional<double> by_table(const trace::Event& event, const std::vector<int>& who);

  const trace::Trace& trace_;
  std::optional<cost::Machine> machine_;
  std::unique_ptr<route::Table> table_;  ///< at a stable address
  std::string table_name_;
  replay::TimeOf on_links_, at_full_bandwidth_;
  std::vector<int> host_of_;                                                   ///< by rank; empty: one host
  std::vector<int> place_of_;                                                  ///< by rank, on the machine
  std::vector<std::string> backends_;                                          ///< of the table
  std::map<std::pair<std::string, bool>, replay::OperationTimes> by_backend_;  ///< "": the table's choice; on a device
  std::vector<std::string> remarks_;
};

}  // namespace medley::reconcile
