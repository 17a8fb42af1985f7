// The file behind a recorder: a mapping whose pages are allocated before they are written, so that a full disk is
// reported instead of a crash (SIGBUS).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>

#include "record/record.hpp"

namespace medley::core {

class RecordFile {
 public:
  /// Memory of this process only, without a file.
  RecordFile(std::uint32_t notes_bytes, std::uint64_t slots);
  /// A new file; throws std::system_error when it cannot be created. grow() can extend it to `at_most` slots.
  RecordFile(const std::filesystem::path& path, std::uint32_t notes_bytes, std::uint64_t slots, std::uint64_t at_most);
  ~RecordFile();
  RecordFile(const RecordFile&) = delete;
  RecordFile& operator=(const RecordFile&) = delete;

  TraceHeader* header() const { return static_cast<TraceHeader*>(base_); }
  std::byte* notes() const { return static_cast<std::byte*>(base_) + trace_header_bytes; }
  Record* records() const { return reinterpret_cast<Record*>(notes() + notes_bytes_); }
  std::uint32_t notes_bytes() const { return notes_bytes_; }
  const std::filesystem::path& path() const { return path_; }
  /// Grows to this many slots; false when the disk or the mapping is full.
  bool grow(std::uint64_t slots) noexcept;
  /// Keeps the file locked until the process ends, so that its next context does not take it for a finished recording.
  void keep_lock() noexcept { keeps_lock_ = true; }
  /// Truncates unused slots.
  void trim(std::uint64_t slots) noexcept;

 private:
  std::size_t bytes(std::uint64_t slots) const {
    return trace_header_bytes + notes_bytes_ + static_cast<std::size_t>(slots) * sizeof(Record);
  }
  void map(int fd, std::size_t length);
  std::filesystem::path path_;
  std::uint32_t notes_bytes_;
  std::uint64_t most_;
  int fd_ = -1;
  bool keeps_lock_ = false;
  void* base_ = nullptr;
  std::size_t mapped_ = 0;
};

}  // namespace medley::core
