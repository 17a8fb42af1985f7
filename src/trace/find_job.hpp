// Which job a flight recorder's folder is asked for: it has a folder per job, whose names nobody knows by heart.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace medley::trace {

/// Medley's recordings in a folder, by name.
std::vector<std::filesystem::path> record_files(const std::filesystem::path& folder);

/// The folders of jobs in a flight recorder's folder, the newest first.
std::vector<std::filesystem::path> jobs_in(const std::filesystem::path& folder);

/// Names of the newest few, for a sentence.
std::string newest_names(const std::vector<std::filesystem::path>& jobs);

/// The folder itself where it holds recordings or no jobs; else the one job in it that is running, or the only one.
/// Throws Error(invalid) that names the newest where it cannot be told.
std::filesystem::path running_job(const std::filesystem::path& folder);

}  // namespace medley::trace
