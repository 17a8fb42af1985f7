// Record files made by hand, for tests of the reader.
#pragma once

#include <cstring>
#include <medley/types.hpp>
#include <string>
#include <vector>

#include "record/record.hpp"

namespace medley::trace::test {

/// A file in memory: header, notes, records.
struct File {
  core::TraceHeader header{};
  std::vector<std::pair<core::NoteKind, std::string>> notes;
  std::vector<core::Record> records;
  std::uint32_t notes_bytes = 1024;

  File() {
    std::memcpy(header.magic, core::trace_magic, sizeof header.magic);
    header.version = core::trace_version;
    header.header_bytes = core::trace_header_bytes;
    header.record_bytes = sizeof(core::Record);
    header.capacity = 64;
    header.ns_per_tick = 1;
    header.start_ticks = 1000;
    header.rank = 0;
    header.size = 2;
    notes = {{core::NoteKind::comm, R"({"name":"world","ranks":[0,1]})"}, {core::NoteKind::backend, "shm"}};
  }

  core::Record& add(Op op, std::int64_t in, std::int64_t out, DType dtype = DType::f32) {
    core::Record r{};
    r.index = records.size() + 1;
    r.sequence = r.index;
    r.issued = 1000 + r.index * 100;
    r.started = r.issued + 10;
    r.completed = r.issued + 60;
    r.in_count = in;
    r.out_count = out;
    r.comm = 1;
    r.backend = 1;
    r.op = static_cast<std::uint8_t>(op);
    r.dtype = static_cast<std::uint8_t>(dtype);
    r.state = core::RecordState::complete;
    records.push_back(r);
    return records.back();
  }

  std::vector<std::byte> bytes() const {
    core::TraceHeader h = header;
    h.notes_bytes = notes_bytes;
    if (h.issued == 0) h.issued = records.size();
    std::vector<std::byte> out(core::trace_header_bytes + notes_bytes + records.size() * sizeof(core::Record));
    std::memcpy(out.data(), &h, sizeof h);
    std::size_t at = core::trace_header_bytes;
    std::uint32_t numbers[8] = {};
    for (const auto& [kind, text] : notes) {
      core::Note note{};
      note.kind = kind;
      note.number = ++numbers[static_cast<int>(kind)];
      note.bytes = static_cast<std::uint32_t>(text.size());
      std::memcpy(out.data() + at, &note, sizeof note);
      std::memcpy(out.data() + at + sizeof note, text.data(), text.size());
      at += (sizeof note + text.size() + 7) / 8 * 8;
    }
    if (!records.empty()) {
      std::memcpy(out.data() + core::trace_header_bytes + notes_bytes, records.data(),
                  records.size() * sizeof(core::Record));
    }
    return out;
  }
};

}  // namespace medley::trace::test
