// Where the ranks of a replay record: the requested folder, or a temporary one that this object deletes.
#pragma once

#include <filesystem>
#include <string>

namespace medley::replay {

class TraceFolder {
 public:
  /// Empty: a new temporary folder. Throws Error(system) when it cannot be made.
  explicit TraceFolder(const std::string& asked);
  ~TraceFolder();
  TraceFolder(const TraceFolder&) = delete;
  TraceFolder& operator=(const TraceFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  bool own_;
  std::filesystem::path path_;
};

}  // namespace medley::replay
