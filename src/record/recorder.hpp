// Writes down every operation of one rank, always: a ring of the last 4,096 that outlives a killed process, or, with
// MEDLEY_TRACE=FOLDER, all of them. Called by the engine under its lock.
#pragma once

#include <cstdint>
#include <filesystem>
#include <medley/backend.hpp>
#include <medley/sdk/memory_barrier.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/ticks.hpp"
#include "record/record.hpp"

namespace medley::core {

class RecordFile;

/// What the recorder is told about the rank.
struct RecordedRank {
  int rank = 0;
  int size = 1;
  std::string job;   ///< equal on all ranks of a job
};

/// MEDLEY_RECORD=off: nothing is recorded at all, to measure what recording costs.
bool records();
/// MEDLEY_TRACE=FOLDER: everything is kept.
bool traces();

class Recorder {
 public:
  /// Where and how much comes from MEDLEY_TRACE (a folder: keep everything), MEDLEY_FLIGHT (a folder for the ring;
  /// "off": none is kept on disk).
  explicit Recorder(const RecordedRank& rank);
  ~Recorder();   ///< a ring without a failure in it is removed

  /// The number under which records refer to this text.
  std::uint32_t note(NoteKind kind, std::string_view text);
  std::uint8_t algorithm(std::string_view name);

  /// Reserves the next record; fields are the caller's to fill before state says `issued`.
  Record& next() noexcept {
    if (header_->issued >= capacity_) make_room();
    Record& record = records_[header_->issued % capacity_];
    record.state = RecordState::writing;
    record.index = ++header_->issued;
    // Before the fields change, for whoever reads them of a killed process, and of a running one: pairs with the second
    // read_barrier() in RecordSource::read().
    write_barrier();
    return record;
  }
  /// The record of this number, or null when it was overwritten since.
  Record* find(std::uint64_t index) noexcept {
    Record& record = records_[(index - 1) % capacity_];
    return record.index == index ? &record : nullptr;
  }
  /// Keeps the ring when the context goes: something failed.
  void keep() noexcept { keep_ = true; }
  const std::filesystem::path& file() const;
  /// The number of the calling thread's scope in this file.
  std::uint32_t scope();

 private:
  void make_room() noexcept;
  std::unique_ptr<RecordFile> file_;
  TraceHeader* header_;
  Record* records_;
  std::uint64_t capacity_;
  bool traces_;                                    ///< a trace, which stays, not a ring
  bool grows_;
  bool keep_ = false;
  std::uint32_t notes_at_ = 0;                     ///< where the next one is written
  std::uint32_t numbers_[8] = {};                  ///< of the last note of each kind
  std::vector<std::uint32_t> scopes_;              ///< by the process's number: this file's
  std::vector<std::string> algorithms_;
};

}  // namespace medley::core
