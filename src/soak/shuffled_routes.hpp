// Makes the routes of a soak's comms change all the time, as in a job with MEDLEY_ONLINE=1 whose links change: a table
// in which every collective may take every backend, and MEDLEY_ONLINE=shuffle.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace medley::soak {

class ShuffledRoutes {
 public:
  /// Sets the variable and writes the table, equal on all ranks, to a temporary file of this process; both until it is
  /// destroyed.
  explicit ShuffledRoutes(const std::vector<std::string>& backends);
  ~ShuffledRoutes();
  ShuffledRoutes(const ShuffledRoutes&) = delete;
  ShuffledRoutes& operator=(const ShuffledRoutes&) = delete;
  /// For ContextOptions::table.
  const std::string& table() const { return path_; }

 private:
  std::string path_;
};

}  // namespace medley::soak
