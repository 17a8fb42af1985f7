// Reads the record files of record/record.hpp: mapped, checked, record by record. A file that was cut off is
// read to its last whole record; one that contradicts itself is refused with the place.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

#include "trace/trace.hpp"

namespace medley::trace {

bool is_record_file(const std::filesystem::path& path);

/// Adds the rank that the file is about.
void read_record_file(const std::filesystem::path& path, Trace& trace);

/// Puts together the members of comms of which each file knows only its own place: those of NCCL's profiler plugin.
void join_comms(Trace& trace);

/// The same of bytes in memory, which must outlive the trace; `place` names them in errors.
void read_records(std::span<const std::byte> bytes, const std::string& place, Trace& trace);

}  // namespace medley::trace
