// Rank processes of this very command, started by a launcher of their own so that they can be watched and
// ended whatever they are stuck in.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "soak/report.hpp"

namespace medley::soak {

class RanksJob {
 public:
  /// `arguments` follow the command's own name; the ranks find `report` through the environment.
  RanksJob(int ranks, const std::vector<std::string>& arguments, const std::string& backends,
           const Report& report);
  ~RanksJob();  ///< ends all ranks
  RanksJob(const RanksJob&) = delete;
  RanksJob& operator=(const RanksJob&) = delete;
  /// The launcher's exit status once all ranks have ended.
  std::optional<int> ended();
  /// The last of what ranks and launcher printed.
  std::string output() const;

 private:
  pid_t launcher_ = 0;
  std::optional<int> status_;
  std::string log_;
};

/// The environment variable with the report's path, set for ranks that this started.
inline constexpr const char* report_variable = "MEDLEY_SOAK_REPORT";

}  // namespace medley::soak
