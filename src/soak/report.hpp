// What ranks report to the supervising process: a file mapped by all, which survives a killed rank.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace medley::soak {

enum class Reported : std::int32_t { nothing, mismatch, error };

/// One rank's slot. The rank writes it, `reported` last.
struct Slot {
  std::atomic<std::int64_t> started;   ///< programs begun
  std::atomic<std::int64_t> finished;  ///< programs completed on this rank, and by then on all others
  std::atomic<Reported> reported;
  std::atomic<std::int32_t> through;  ///< 1 once the rank has run all its programs
  std::atomic<std::int32_t> process;
  std::int32_t error_kind;
  std::atomic<std::int64_t> ready_ns;    ///< when a rank of an invalid program was ready for the fault, steady clock
  std::atomic<std::int64_t> noticed_ns;  ///< when it saw the error, if it did something before reporting it
  std::atomic<std::int64_t> reported_ns;
  char text[1024];

  void report(Reported what, int kind, const std::string& sentence);
};

class Report {
 public:
  /// Makes a temporary file and removes it at the end.
  explicit Report(int ranks);
  /// Opens a file that another process made.
  explicit Report(const std::string& path);
  ~Report();
  Report(const Report&) = delete;
  Report& operator=(const Report&) = delete;
  Slot& operator[](int rank) const { return slots_[rank]; }
  const std::string& path() const { return path_; }
  void clear();

 private:
  void map();
  std::string path_;
  int file_ = -1;
  bool owner_ = false;
  std::size_t bytes_ = 0;
  Slot* slots_ = nullptr;
};

}  // namespace medley::soak
