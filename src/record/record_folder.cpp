#include "record/record_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <medley/sdk/descriptor.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

#include "record/record.hpp"

namespace medley::core {
namespace {

namespace fs = std::filesystem;

bool all_of_digits(std::string_view text, std::string_view digits) {
  return !text.empty() && text.find_first_not_of(digits) == std::string_view::npos;
}

/// Such as rank-0000.trace and rank-0000.2.trace.
bool is_recording_name(std::string_view name) {
  constexpr std::string_view head = "rank-", tail = ".trace", decimal = "0123456789";
  if (!name.starts_with(head) || !name.ends_with(tail) || name.size() <= head.size() + tail.size()) return false;
  name = name.substr(head.size(), name.size() - head.size() - tail.size());
  const std::size_t dot = name.find('.');
  return all_of_digits(name.substr(0, dot), decimal) &&
         (dot == std::string_view::npos || all_of_digits(name.substr(dot + 1), decimal));
}

bool is_of_this_host(const TraceHeader& header) {
  char host[sizeof header.host] = {};
  gethostname(host, sizeof host - 1);
  return std::strncmp(host, header.host, sizeof host) == 0;
}

bool is_process(std::int64_t pid) { return pid > 0 && (kill(static_cast<pid_t>(pid), 0) == 0 || errno == EPERM); }

/// The state of an open file. The lock taken to find out is kept until the descriptor is closed.
RecordingState state_of_open_file(int fd) {
  struct stat status {};
  if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) return RecordingState::foreign;
  TraceHeader header{};
  const bool whole = pread(fd, &header, sizeof header, 0) == static_cast<ssize_t>(sizeof header) &&
                     std::memcmp(header.magic, trace_magic, sizeof trace_magic) == 0;
  const bool here = whole && is_of_this_host(header);
  if (flock(fd, LOCK_EX | LOCK_NB) == 0) return whole ? RecordingState::finished : RecordingState::foreign;
  const bool held = errno == EWOULDBLOCK;
  if (here && header.pid == getpid()) return RecordingState::own;
  if (held) return RecordingState::live;
  if (!whole) return RecordingState::foreign;
  // A file system without locks: only processes of this host can be known to have ended.
  return here && !is_process(header.pid) ? RecordingState::finished : RecordingState::live;
}

/// Removes the file if it is a finished recording, and still the one that was examined.
bool remove_if_finished(const fs::path& file) {
  const Descriptor open_file(open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (open_file.fd() < 0 || state_of_open_file(open_file.fd()) != RecordingState::finished) return false;
  struct stat looked_at {
  }, now{};
  if (fstat(open_file.fd(), &looked_at) != 0 || lstat(file.c_str(), &now) != 0) return false;
  return looked_at.st_ino == now.st_ino && looked_at.st_dev == now.st_dev && unlink(file.c_str()) == 0;
}

}  // namespace

fs::path flight_folder() {
  const auto set = [](const char* variable) -> std::string {
    const char* text = std::getenv(variable);
    return text ? text : "";
  };
  if (const std::string named = set("MEDLEY_FLIGHT"); !named.empty()) return named;
  const std::string temporary = set("TMPDIR");
  return fs::path(temporary.empty() ? "/tmp" : temporary) / fmt::format("medley-{}", getuid());
}

RecordingState state_of_recording(const fs::path& file) {
  struct stat status {};
  if (lstat(file.c_str(), &status) != 0) return errno == ENOENT ? RecordingState::absent : RecordingState::foreign;
  const Descriptor open_file(open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  return open_file.fd() < 0 ? RecordingState::foreign : state_of_open_file(open_file.fd());
}

int create_recording(const fs::path& file) {
  const int fd = open(file.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) throw std::system_error(errno, std::generic_category(), "cannot create " + file.native());
  flock(fd, LOCK_EX);  // another process may be examining it; without locks the header's pid must suffice
  return fd;
}

fs::path new_recording(const fs::path& folder, int rank) {
  for (int n = 1;; ++n) {
    const fs::path file =
        folder / (n == 1 ? fmt::format("rank-{:04}.trace", rank) : fmt::format("rank-{:04}.{}.trace", rank, n));
    switch (state_of_recording(file)) {
      case RecordingState::absent: return file;
      case RecordingState::own: continue;
      case RecordingState::finished:
        if (remove_if_finished(file)) return file;
        [[fallthrough]];  // another job created it first
      case RecordingState::live:
        throw std::runtime_error(
            fmt::format("another job is writing {}; name a folder of its own for each job", file.native()));
      case RecordingState::foreign:
        throw std::runtime_error(
            fmt::format("{} is not a trace that Medley wrote; move it away or name another folder", file.native()));
    }
  }
}

void remove_finished_recordings(const fs::path& folder) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (is_recording_name(entry.path().filename().native())) remove_if_finished(entry.path());
  }
}

bool holds_only_finished_recordings(const fs::path& folder) {
  std::error_code unreadable;
  bool any = false;
  for (const auto& entry : fs::directory_iterator(folder, unreadable)) {
    if (!is_recording_name(entry.path().filename().native()) ||
        state_of_recording(entry.path()) != RecordingState::finished)
      return false;
    any = true;
  }
  return any && !unreadable;
}

}  // namespace medley::core
