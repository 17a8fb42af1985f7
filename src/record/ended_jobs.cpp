#include "record/ended_jobs.hpp"

#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <system_error>
#include <vector>

#include "record/record_folder.hpp"

namespace medley::core {
namespace {

namespace fs = std::filesystem;

/// Hexadecimal nanoseconds, a dash, a pid: as context_backends names jobs.
bool is_job_name(std::string_view name) {
  const std::size_t dash = name.find_first_not_of("0123456789abcdef");
  return dash != std::string_view::npos && dash >= 12 && name[dash] == '-' && dash + 1 < name.size() &&
         name.find_first_not_of("0123456789", dash + 1) == std::string_view::npos;
}

struct Job {
  fs::file_time_type changed;  ///< the latest time of the folder, made when the job began, and of its files
  std::uintmax_t bytes = 0;
  fs::path folder;
};

/// Every folder that has the name of a job, the newest first.
std::vector<Job> jobs_of(const fs::path& folder) {
  std::vector<Job> jobs;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const bool named = is_job_name(entry.path().filename().native());
    if (!named || entry.is_symlink(ignored) || !entry.is_directory(ignored)) continue;
    Job job{entry.last_write_time(ignored), 0, entry.path()};
    if (ignored) continue;  // it has just been removed
    for (const auto& file : fs::directory_iterator(job.folder, ignored)) {
      if (!file.is_regular_file(ignored)) continue;
      const std::uintmax_t bytes = file.file_size(ignored);
      if (!ignored) job.bytes += bytes;
      const fs::file_time_type written = file.last_write_time(ignored);
      if (!ignored) job.changed = std::max(job.changed, written);
    }
    jobs.push_back(std::move(job));
  }
  std::sort(jobs.begin(), jobs.end(), [](const Job& a, const Job& b) { return a.changed > b.changed; });
  return jobs;
}

}  // namespace

void remove_ended_jobs(const fs::path& folder, const EndedJobLimits& limits) {
  const std::vector<Job> jobs = jobs_of(folder);
  const auto oldest = fs::file_time_type::clock::now() - limits.age;
  std::uintmax_t bytes = 0;
  for (const Job& job : jobs) bytes += job.bytes;
  // Whether a job has ended takes a lock on each of its files: it is asked only where a limit may be exceeded.
  const bool few = jobs.size() <= limits.jobs && bytes <= limits.bytes;
  std::size_t ended = 0;
  bytes = 0;
  for (const Job& job : jobs) {
    const bool old = job.changed < oldest;
    if ((few && !old) || !holds_only_finished_recordings(job.folder)) continue;
    ++ended;
    bytes += job.bytes;
    if (!old && (ended == 1 || (ended <= limits.jobs && bytes <= limits.bytes))) continue;
    remove_finished_recordings(job.folder);
    rmdir(job.folder.c_str());  // fails if something else appeared in it
  }
}

}  // namespace medley::core
