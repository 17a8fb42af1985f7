// Records every operation of one rank, always on: a ring of the last 4,096 that outlives a killed process, or, with
// MEDLEY_TRACE=FOLDER, all of them. Called by the engine under its lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <medley/backend.hpp>
#include <medley/sdk/memory_barrier.hpp>
#include <medley/sdk/pause.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/ticks.hpp"
#include "record/record.hpp"
#include "record/scope.hpp"

namespace medley::core {

class RecordFile;

/// The rank that a recorder belongs to.
struct RecordedRank {
  int rank = 0;
  int size = 1;
  std::string job;  ///< equal on all ranks of a job
};

/// MEDLEY_RECORD=off disables recording, to measure its cost.
bool records();
/// MEDLEY_TRACE=FOLDER keeps every record.
bool traces();

class Recorder {
 public:
  /// Location and size come from MEDLEY_TRACE (a folder: keep everything) and MEDLEY_FLIGHT (a folder for the ring;
  /// "off": none is kept on disk).
  explicit Recorder(const RecordedRank& rank);
  ~Recorder();  ///< a ring without a failure in it is removed

  /// The number under which records refer to this text.
  std::uint32_t note(NoteKind kind, std::string_view text);
  /// Whether half of the space is free, for notes that must not displace others.
  bool has_room_for_notes() const noexcept;
  std::uint8_t algorithm(std::string_view name);

  /// Reserves the next record; the caller fills its fields before it sets the state to `issued`.
  [[gnu::always_inline]] Record& next() noexcept {
    if (header_->issued >= capacity_ && grows_) [[unlikely]]
      make_room();
    Record& record = records_[slot(header_->issued)];
    prefetch_to_write(&record + 1);  // the ring is larger than the first-level cache; past its end this does no harm
    prefetch_to_write(reinterpret_cast<const std::byte*>(&record + 1) + 64);
    record.state = RecordState::writing;
    record.index = ++header_->issued;
    // Before the fields change, for readers of a killed or running process's file: pairs with the second
    // read_barrier() in RecordSource::read().
    write_barrier();
    return record;
  }
  /// The record of this number, or null if it has been overwritten.
  Record* find(std::uint64_t index) noexcept {
    Record& record = records_[slot(index - 1)];
    return record.index == index ? &record : nullptr;
  }
  /// Keeps the ring after the context is destroyed: something failed.
  void keep() noexcept { keep_ = true; }
  const std::filesystem::path& file() const;
  /// The number of the calling thread's scope in this file.
  std::uint32_t scope() { return scopes_exist() ? current_scope_number() : 0; }

 private:
  /// Rings have a power of two of slots, unless a trace became one when the disk was full: a division takes
  /// as long as the record.
  std::uint64_t slot(std::uint64_t number) const noexcept { return mask_ ? number & mask_ : number % capacity_; }
  void set_mask() noexcept {
    mask_ = grows_ ? ~std::uint64_t{0} : (capacity_ & (capacity_ - 1)) == 0 ? capacity_ - 1 : 0;
  }
  void make_room() noexcept;
  std::uint32_t current_scope_number();
  std::unique_ptr<RecordFile> file_;
  TraceHeader* header_;
  Record* records_;
  std::uint64_t capacity_;
  std::uint64_t mask_;  ///< from a number to its slot; 0: by a division
  bool traces_;         ///< a full trace, which is kept, not a ring
  bool grows_;
  bool keep_ = false;
  std::uint32_t notes_at_ = 0;         ///< where the next one is written
  std::uint32_t numbers_[8] = {};      ///< of the last note of each kind
  std::vector<std::uint32_t> scopes_;  ///< from the process's number to this file's
  std::vector<std::string> algorithms_;
};

}  // namespace medley::core
