// Detects what a path holds and calls its reader.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <medley/error.hpp>

#include "trace/clocks.hpp"
#include "trace/find_job.hpp"
#include "trace/import.hpp"
#include "trace/record_reader.hpp"

namespace medley::trace {
namespace {

namespace fs = std::filesystem;

/// Other tools' files in a folder: one per rank, as torch writes them.
std::vector<fs::path> other_files(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.is_regular_file(ignored) && looks_importable(entry.path())) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// A flight recorder's folder holds a folder per job.
fs::path only_job(const fs::path& folder) {
  const std::vector<fs::path> jobs = jobs_in(folder);
  if (jobs.size() == 1) return jobs.front();
  if (jobs.size() > 1) {
    throw Error(ErrorKind::invalid, fmt::format("{} holds {} jobs; name one of them, newest first: {}", folder.native(),
                                                jobs.size(), newest_names(jobs)));
  }
  throw Error(ErrorKind::invalid, fmt::format("{}: there is no trace in it (rank-0000.trace, …); run the job with "
                                              "MEDLEY_TRACE={}",
                                              folder.native(), folder.native()));
}

void put_in_order(Trace& trace) {
  std::sort(trace.ranks.begin(), trace.ranks.end(), [](const RankTrace& a, const RankTrace& b) {
    return std::pair(a.context, a.rank) < std::pair(b.context, b.rank);
  });
  for (std::size_t i = 1; i < trace.ranks.size(); ++i) {
    const RankTrace &a = trace.ranks[i - 1], &b = trace.ranks[i];
    if (a.rank == b.rank && a.context == b.context) {
      throw Error(ErrorKind::invalid,
                  fmt::format("{} and {} are both of rank {}: they belong to different jobs", a.file, b.file, a.rank));
    }
  }
}

}  // namespace

Trace open_trace(const std::string& path) {
  std::error_code error;
  if (!fs::exists(path, error))
    throw Error(ErrorKind::invalid, fmt::format("{}: there is no such file or folder", path));
  Trace trace;
  trace.source = path;
  if (fs::is_directory(path)) {
    std::vector<fs::path> files = record_files(path);
    if (files.empty()) {
      const std::vector<fs::path> others = other_files(path);
      if (others.empty()) files = record_files(only_job(path));
      for (const fs::path& file : others) import_file(file, trace);
    }
    for (const fs::path& file : files) read_record_file(file, trace);
  } else if (!fs::is_regular_file(path, error)) {
    // The file is read more than once, and a pipe without a writer would wait forever.
    throw Error(ErrorKind::invalid,
                fmt::format("{}: is neither a regular file nor a folder; write what it gives to a file first", path));
  } else if (is_record_file(path)) {
    read_record_file(path, trace);
  } else {
    import_file(path, trace);
  }
  if (trace.format.empty()) trace.format = "medley";
  put_in_order(trace);
  join_comms(trace);
  align_clocks(trace);
  return trace;
}

}  // namespace medley::trace
