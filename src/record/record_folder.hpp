// Which files of a folder are Medley's recordings, which of them a live process writes, and which may be removed. The
// recorder and `medley replay` create and remove recordings only through these functions.
#pragma once

#include <filesystem>
#include <medley/export.hpp>

namespace medley::core {

enum class RecordingState {
  absent,
  own,       ///< another context of this process writes it, or wrote it
  live,      ///< another process writes it
  finished,  ///< a recording that nobody writes any more
  foreign,   ///< not a recording: never touched
};

/// Where flight recorders write, a folder for each job: MEDLEY_FLIGHT, or one that is private to this user, since
/// others could plant links in a shared one.
MEDLEY_API std::filesystem::path flight_folder();

MEDLEY_API RecordingState state_of_recording(const std::filesystem::path& file);

/// Creates the file, which must not exist, and locks it for the lifetime of the process; returns its descriptor. Throws
/// std::system_error.
int create_recording(const std::filesystem::path& file);

/// The name for a new recording of this rank: rank-0003.trace, or rank-0003.2.trace for a second context of a process.
/// Removes a finished recording of that name. Throws std::runtime_error when the name belongs to a live job or to a
/// file that is not a recording.
std::filesystem::path new_recording(const std::filesystem::path& folder, int rank);

/// Removes the recordings of finished jobs from a folder.
void remove_finished_recordings(const std::filesystem::path& folder);

/// Whether there are recordings in a folder, nobody writes them any more, and nothing else is there.
bool holds_only_finished_recordings(const std::filesystem::path& folder);

}  // namespace medley::core
