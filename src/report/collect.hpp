// Collects what Medley's commands wrote into a folder: recognises each file by its content, checks it, and records what
// was not used and why. Corrupt and hostile files are refused with a sentence; they never crash the program.
#pragma once

#include <filesystem>

#include "report/fields.hpp"

namespace medley::report {

/// The data of one folder: a list for each format of formats.hpp, `traces`, `skipped`, `failed` (lines of skipped.txt
/// and failed.txt, which ./run writes) and `files`. Leaves out `ignored`, such as the report itself. Throws
/// Error(invalid) when there is no such folder.
Json collect(const std::filesystem::path& folder, const std::filesystem::path& ignored = {});

}  // namespace medley::report
