// The layout of a recorded run: one file per rank that the engine writes and `medley trace` reads. A record's state is
// written last, so the file of a killed process is as usable as any other.
#pragma once

#include <cstdint>
#include <type_traits>

namespace medley::core {

inline constexpr char trace_magic[8] = {'M', 'E', 'D', 'L', 'E', 'Y', 'T', 'R'};
/// docs/formats.md has the history. A file gets the second number with its first note about a decision.
inline constexpr std::uint32_t trace_version = 3, trace_version_with_decisions = 4;

/// Why an operation took its route.
enum class RouteReason : std::uint8_t {
  named,     ///< the call named the backend
  rule,      ///< a rule of the comm or the context
  table,     ///< a row of the route table
  fallback,  ///< none of these: the first capable backend
  online,    ///< switched to in the running job (MEDLEY_ONLINE)
  trial,     ///< measured again in the running job, beside the route in use
};

enum class RecordState : std::uint8_t { writing, issued, started, complete, failed };

/// One operation. Times are ticks of the header's clock; 0: not yet.
struct Record {
  std::uint64_t index;     ///< number of the operation on this rank, from 1; slot (index-1) % capacity
  std::uint64_t sequence;  ///< number on its comm: of collectives or of messages
  std::uint64_t issued, started, completed;
  std::int64_t in_count, out_count;
  std::uint64_t waited;   ///< when the program started to wait for it; 0: it was complete by then, or not async
  std::uint64_t part_of;  ///< index of the operation it is a part of; 0: none
  std::uint64_t gpu_started, gpu_completed;  ///< on the device, where that was measured
  std::uint64_t gpu_waited;  ///< when the caller's stream reached its wait for it, where that was measured
  std::uint32_t comm;        ///< number of a comm note
  std::uint32_t scope;       ///< number of a scope note; 0: none
  std::int32_t root;         ///< or the peer of a message
  std::int32_t tag;
  std::uint8_t op, dtype, reduce, memory;
  RecordState state;
  RouteReason reason;
  std::uint8_t backend;    ///< number of a backend note
  std::uint8_t algorithm;  ///< number of an algorithm note; 0: the backend's choice
  std::uint8_t flags;
  std::uint8_t spare[7];
};
inline constexpr std::uint8_t record_async = 1, record_inline = 2, record_group = 4;
/// Counts are bytes: the program's element type is not known.
inline constexpr std::uint8_t record_bytes_only = 8;
/// Its times are those of the host's call; when the transfer ended is not known.
inline constexpr std::uint8_t record_call_only = 16;
/// The program may wait for it by means that do not tell when; where it did tell, the flag is removed again.
inline constexpr std::uint8_t record_wait_unknown = 32;
/// The backend of records from the NCCL profiler plugin: they have no reduction, no phase, and no time at which the
/// program waited. Their comm notes have `size` and `rank`, and `ranks` only where all ranks of the job are members.
inline constexpr const char* nccl_profiler_backend = "nccl profiler";
static_assert(sizeof(Record) == 128 && std::is_trivially_copyable_v<Record>);

/// The kind of a note: a text that records refer to by number.
enum class NoteKind : std::uint8_t {
  comm,       ///< JSON: name, ranks (of the world), number
  backend,    ///< its name
  algorithm,  ///< its name
  scope,      ///< as given by the program
  job,        ///< JSON: backends and versions, rules, table hash
  decision,   ///< JSON: a route that was changed or kept in the running job; no record refers to it
};

/// Notes follow the header, one after another: this struct, then `bytes` of text, padded to 8.
struct Note {
  NoteKind kind;
  std::uint8_t spare[3];
  std::uint32_t number;
  std::uint32_t bytes;  ///< 0 ends the list
  std::uint32_t reserved;
};
static_assert(sizeof(Note) == 16);

struct TraceHeader {
  char magic[8];
  std::uint32_t version;
  std::uint32_t header_bytes;  ///< where the notes begin
  std::uint32_t notes_bytes;   ///< space for notes; records begin after it
  std::uint32_t record_bytes;
  std::uint64_t capacity;     ///< slots; when they are full the oldest are overwritten
  std::uint64_t issued;       ///< operations so far
  std::uint64_t dropped;      ///< not recorded because the disk was full
  std::uint64_t start_ticks;  ///< the same instant on three clocks
  std::int64_t start_monotonic_ns;
  std::int64_t start_real_ns;
  double ns_per_tick;
  std::int32_t rank, size;
  std::int64_t pid;
  char host[64];
};
inline constexpr std::uint32_t trace_header_bytes = 256;
static_assert(sizeof(TraceHeader) <= trace_header_bytes);

}  // namespace medley::core
