// Rank processes of this command, started by their own launcher so that they can be watched and ended even
// when stuck.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "soak/report.hpp"

namespace medley::soak {

class RanksJob {
 public:
  /// `arguments` follow the command's name; the ranks find `report` through the environment.
  RanksJob(int ranks, const std::vector<std::string>& arguments, const std::string& backends, const Report& report);
  ~RanksJob();  ///< ends all ranks
  RanksJob(const RanksJob&) = delete;
  RanksJob& operator=(const RanksJob&) = delete;
  /// The launcher's exit status once all ranks have ended.
  std::optional<int> ended();
  /// The last output of the ranks and the launcher.
  std::string output() const;

 private:
  pid_t launcher_ = 0;
  std::optional<int> status_;
  std::string log_;
};

/// The environment variable that holds the report's path, set for the ranks started here.
inline constexpr const char* report_variable = "MEDLEY_SOAK_REPORT";

}  // namespace medley::soak
