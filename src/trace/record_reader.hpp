// Reads the record files of record/record.hpp: mapped, checked, record by record. A truncated file is read to
// its last whole record; an inconsistent one is rejected, with the place.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

#include "trace/trace.hpp"

namespace medley::trace {

bool is_record_file(const std::filesystem::path& path);

/// Adds the file's rank.
void read_record_file(const std::filesystem::path& path, Trace& trace);

/// Joins the members of comms of which each file knows only its own rank: those of NCCL's profiler plugin.
void join_comms(Trace& trace);

/// The same for bytes in memory, which must outlive the trace; `place` names them in errors.
void read_records(std::span<const std::byte> bytes, const std::string& place, Trace& trace);

}  // namespace medley::trace
