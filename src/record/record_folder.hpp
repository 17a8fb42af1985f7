// Which files of a folder are recordings of Medley's, which of them a live process writes, and which may go. The recorder
// and `medley replay` create and remove recordings through these functions alone.
#pragma once

#include <chrono>
#include <filesystem>

namespace medley::core {

enum class RecordingState {
  absent,
  own,        ///< another context of this process writes it, or wrote it
  live,       ///< another process writes it
  finished,   ///< a recording that nobody writes any more
  foreign,    ///< not a recording: never touched
};

RecordingState state_of_recording(const std::filesystem::path& file);

/// Creates the file, which must not exist, and locks it for as long as the process lives; returns its descriptor. Throws
/// std::system_error.
int create_recording(const std::filesystem::path& file);

/// The name for a new recording of this rank: rank-0003.trace, or rank-0003.2.trace for a second context of a process. A
/// finished recording of that name is removed. Throws std::runtime_error when the name belongs to a live job or to a file
/// that is none of Medley's.
std::filesystem::path new_recording(const std::filesystem::path& folder, int rank);

/// Removes what finished jobs left in a folder of recordings.
void remove_finished_recordings(const std::filesystem::path& folder);

/// Removes job folders in a flight recorder's folder that are older than `age`. A folder goes only when its name is that of
/// a job, everything in it is a finished recording, and nobody put anything else there.
void remove_old_jobs(const std::filesystem::path& folder, std::chrono::hours age);

}  // namespace medley::core
