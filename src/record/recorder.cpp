#include "record/recorder.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "record/ended_jobs.hpp"
#include "record/record_file.hpp"
#include "record/record_folder.hpp"

namespace medley::core {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t ring_slots = 4096;
constexpr std::uint32_t ring_notes = 64 * 1024;
constexpr std::uint64_t step_slots = 1 << 18;     // a trace grows by 26 MiB
constexpr std::uint64_t most_slots = 1ull << 29;  // 52 GiB of address space
constexpr std::uint32_t trace_notes = 4 * 1024 * 1024;

std::string environment(const char* variable) {
  const char* text = std::getenv(variable);
  return text ? text : "";
}

bool is_own(const fs::path& folder) {
  struct stat status {};
  return lstat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == getuid();
}

std::unique_ptr<RecordFile> open_trace(const fs::path& folder, int rank) {
  try {
    fs::create_directories(folder);
    const fs::path file = new_recording(folder, rank);
    // An earlier, larger job left files of more ranks, which a reader would attribute to this job. Rank 0 comes first.
    if (rank == 0) remove_finished_recordings(folder);
    return std::make_unique<RecordFile>(file, trace_notes, step_slots, most_slots);
  } catch (const std::exception& error) {
    throw Error(ErrorKind::system, fmt::format("MEDLEY_TRACE={}: {}", folder.native(), error.what()));
  }
}

/// The ring; in memory only where disk is not wanted or not available.
std::unique_ptr<RecordFile> open_ring(const RecordedRank& rank) {
  const fs::path folder = flight_folder();
  try {
    if (folder == "off") return std::make_unique<RecordFile>(ring_notes, ring_slots);
    if (mkdir(folder.c_str(), 0700) == 0 || is_own(folder)) {
      remove_ended_jobs(folder, {});
      fs::create_directories(folder / rank.job);
      return std::make_unique<RecordFile>(new_recording(folder / rank.job, rank.rank), ring_notes, ring_slots,
                                          ring_slots);
    }
  } catch (const std::exception&) {
    // a flight recorder must not keep a job from starting
  }
  return std::make_unique<RecordFile>(ring_notes, ring_slots);
}

}  // namespace

bool records() { return environment("MEDLEY_RECORD") != "off"; }
bool traces() { return records() && !environment("MEDLEY_TRACE").empty(); }

Recorder::Recorder(const RecordedRank& rank) {
  const std::string trace = environment("MEDLEY_TRACE");
  grows_ = traces_ = !trace.empty();
  file_ = grows_ ? open_trace(trace, rank.rank) : open_ring(rank);
  header_ = file_->header();
  records_ = file_->records();
  capacity_ = grows_ ? step_slots : ring_slots;
  set_mask();
  TraceHeader header{};
  header.version = trace_version;
  header.header_bytes = trace_header_bytes;
  header.notes_bytes = file_->notes_bytes();
  header.record_bytes = sizeof(Record);
  header.capacity = capacity_;
  header.start_ticks = ticks();
  header.start_monotonic_ns = clock_ns(CLOCK_MONOTONIC);
  header.start_real_ns = clock_ns(CLOCK_REALTIME);
  header.ns_per_tick = ns_per_tick();
  header.rank = rank.rank;
  header.size = rank.size;
  header.pid = getpid();
  gethostname(header.host, sizeof header.host - 1);
  *header_ = header;
  write_barrier();
  std::memcpy(header_->magic, trace_magic, sizeof trace_magic);  // last: a reader sees a whole header or none
}

Recorder::~Recorder() {
  if (header_->pid != getpid()) return;  // a forked child leaves the parent's file alone
  if (traces_) file_->keep_lock();
  if (grows_) file_->trim(std::min(header_->issued, capacity_));
  if (traces_ || keep_ || file_->path().empty()) return;
  std::error_code ignored;
  fs::remove(file_->path(), ignored);
  fs::remove(file_->path().parent_path(), ignored);  // unless another rank's file is still there
}

const fs::path& Recorder::file() const { return file_->path(); }

void Recorder::make_room() noexcept {
  if (!grows_ || header_->issued < capacity_) return;
  if (file_->grow(capacity_ + step_slots)) {
    capacity_ += step_slots;
    header_->capacity = capacity_;
  } else {
    // From here on it is a ring: the latest records are worth more than the first.
    grows_ = false;
    set_mask();
    keep_ = true;
    ++header_->dropped;
  }
}

std::uint32_t Recorder::note(NoteKind kind, std::string_view text) {
  const auto bytes = static_cast<std::uint32_t>(text.size());
  const std::uint32_t padded = (static_cast<std::uint32_t>(sizeof(Note)) + bytes + 7) / 8 * 8;
  if (kind == NoteKind::decision) header_->version = trace_version_with_decisions;
  if (bytes == 0 || notes_at_ + padded + sizeof(Note) > file_->notes_bytes()) return 0;  // 0: unknown
  std::byte* at = file_->notes() + notes_at_;
  Note note{};
  note.kind = kind;
  note.number = ++numbers_[static_cast<std::size_t>(kind)];
  std::memcpy(at + sizeof note, text.data(), bytes);
  std::memcpy(at, &note, sizeof note);
  write_barrier();                             // pairs with the read_barrier() in read_notes()
  reinterpret_cast<Note*>(at)->bytes = bytes;  // last: publishes the note
  notes_at_ += padded;
  return note.number;
}

bool Recorder::has_room_for_notes() const noexcept { return notes_at_ < file_->notes_bytes() / 2; }

std::uint8_t Recorder::algorithm(std::string_view name) {
  if (name.empty()) return 0;
  for (std::size_t i = 0; i < algorithms_.size(); ++i) {
    if (algorithms_[i] == name) return static_cast<std::uint8_t>(i + 1);
  }
  algorithms_.emplace_back(name);
  return static_cast<std::uint8_t>(note(NoteKind::algorithm, name));
}

std::uint32_t Recorder::current_scope_number() {
  const std::uint32_t current = current_scope();
  if (current == 0) return 0;
  if (current >= scopes_.size()) scopes_.resize(current + 1, 0);
  if (scopes_[current] == 0) scopes_[current] = note(NoteKind::scope, scope_name(current));
  return scopes_[current];
}

}  // namespace medley::core
