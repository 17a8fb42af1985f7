#include "trace/find_job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <medley/error.hpp>

#include "record/record_folder.hpp"

namespace medley::trace {
namespace fs = std::filesystem;

std::vector<fs::path> record_files(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().extension() == ".trace" && entry.is_regular_file(ignored)) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<fs::path> jobs_in(const fs::path& folder) {
  std::vector<std::pair<fs::file_time_type, fs::path>> jobs;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.is_directory(ignored) && !record_files(entry.path()).empty())
      jobs.emplace_back(entry.last_write_time(ignored), entry.path());
  }
  std::sort(jobs.begin(), jobs.end(), std::greater<>());
  std::vector<fs::path> paths;
  for (auto& [time, path] : jobs) paths.push_back(std::move(path));
  return paths;
}

std::string newest_names(const std::vector<fs::path>& jobs) {
  constexpr std::size_t most = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(jobs.size(), most); ++i)
    text += (i > 0 ? ", " : "") + jobs[i].filename().native();
  return jobs.size() > most ? text + ", …" : text;
}

fs::path running_job(const fs::path& folder) {
  if (!record_files(folder).empty()) return folder;
  const std::vector<fs::path> jobs = jobs_in(folder);
  if (jobs.size() == 1) return jobs.front();
  if (jobs.empty()) return folder;
  std::vector<fs::path> running;
  std::copy_if(jobs.begin(), jobs.end(), std::back_inserter(running), [](const fs::path& job) {
    const std::vector<fs::path> files = record_files(job);
    return std::any_of(files.begin(), files.end(), [](const fs::path& file) {
      const core::RecordingState state = core::state_of_recording(file);
      return state == core::RecordingState::live || state == core::RecordingState::own;
    });
  });
  if (running.size() == 1) return running.front();
  if (running.empty())
    throw Error(ErrorKind::invalid,
                fmt::format("{} holds {} jobs, none of which is running; name one of them, newest first: {}",
                            folder.native(), jobs.size(), newest_names(jobs)));
  throw Error(ErrorKind::invalid, fmt::format("{} running jobs are in {}; name one of them, newest first: {}",
                                              running.size(), folder.native(), newest_names(running)));
}

}  // namespace medley::trace
