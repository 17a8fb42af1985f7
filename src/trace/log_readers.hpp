// Readers of training logs: DeepSpeed's comms logger and NCCL's log. Both take a log line by line and ignore
// other lines.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "trace/trace.hpp"

namespace medley::trace {

/// "[rank3]: text", "[default0]:text" from launchers that label their ranks' lines: the rank, and the line
/// without the label. -1: no label.
struct LabelledLine {
  int rank = -1;
  std::string_view text;
};
LabelledLine unlabelled(std::string_view line) noexcept;

class DeepSpeedLog {
 public:
  DeepSpeedLog(const std::string& place, Trace& trace);
  ~DeepSpeedLog();
  void line(std::string_view text, std::size_t number);
  bool found() const;
  /// Adds the ranks to the trace; rejects a log without a single row.
  void finish();

 private:
  class Reader;
  LabelledLine without_prefix(std::string_view line);
  const std::string& place_;
  Trace& trace_;
  std::map<int, std::unique_ptr<Reader>> readers_;  ///< by the label's rank
  std::map<std::string, int> prefixes_;             ///< "host" or "3" before ": ", with the label that stands for it
};

class NcclLog {
 public:
  NcclLog(const std::string& place, Trace& trace);
  ~NcclLog();
  void line(std::string_view text, std::size_t number);
  bool found() const;
  void finish();

 private:
  struct Process;
  const std::string& place_;
  Trace& trace_;
  std::map<std::string, std::unique_ptr<Process>> processes_;  ///< by host:pid
};

}  // namespace medley::trace
