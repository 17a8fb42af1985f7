#include "trace/record_reader.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <limits>
#include <map>
#include <medley/error.hpp>
#include <medley/sdk/memory_barrier.hpp>
#include <nlohmann/json.hpp>

#include "base/format_version.hpp"
#include "record/record.hpp"
#include "trace/import_parts.hpp"
#include "trace/sizes.hpp"

namespace medley::trace {
namespace {

using core::Note;
using core::NoteKind;
using core::Record;
using core::RecordState;
using core::TraceHeader;

// A ring of the flight recorder is a trace that overwrites its oldest records: both have one format.
constexpr core::FileFormat file_format{"trace", core::trace_version, core::trace_version_with_decisions,
                                       "record the run again"};

[[noreturn]] void refuse(const std::string& place, const std::string& sentence) {
  throw Error(ErrorKind::invalid, fmt::format("{}: {}", place, sentence));
}

/// A mapped file, kept until its last record is read.
class Mapping {
 public:
  explicit Mapping(const std::filesystem::path& path) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) refuse(path.native(), "cannot be opened");
    struct stat status {};
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0) {
      bytes_ = static_cast<std::size_t>(status.st_size);
      base_ = mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, fd, 0);
    }
    close(fd);
    if (base_ == MAP_FAILED) refuse(path.native(), "cannot be mapped: it is empty or not a regular file");
    madvise(base_, bytes_, MADV_SEQUENTIAL);
  }
  ~Mapping() { munmap(base_, bytes_); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  std::span<const std::byte> bytes() const { return {static_cast<const std::byte*>(base_), bytes_}; }

 private:
  void* base_ = MAP_FAILED;
  std::size_t bytes_ = 0;
};

/// Maps the notes of a file to the trace's numbers, by kind and number in the file.
struct NoteNumbers {
  std::array<std::vector<std::uint32_t>, 5> by_kind;
  std::uint32_t find(NoteKind kind, std::uint32_t number) const {
    const auto& list = by_kind[static_cast<std::size_t>(kind)];
    return number < list.size() ? list[number] : std::numeric_limits<std::uint32_t>::max();
  }
};

class RecordSource final : public EventSource {
 public:
  std::shared_ptr<Mapping> mapping;  ///< null when the caller owns the bytes
  std::span<const std::byte> records;
  std::string place;
  std::uint64_t records_at = 0;  ///< bytes before the first record
  std::uint64_t capacity = 0;
  std::uint64_t first = 1;  ///< index of the oldest record kept
  std::uint64_t last = 0;
  TraceHeader header{};
  NoteNumbers notes;
  std::vector<Group> groups;           ///< by the trace's number; only those of this file are set
  std::vector<bool> has_phase;         ///< by the trace's number of a scope
  std::uint32_t by_nccl_profiler = 0;  ///< number of that backend's name; 0: the file has none of its records
  /// Comms whose members are not recorded: group, own rank in it
  std::vector<std::pair<std::uint32_t, int>> own_places;

  std::size_t size() const override { return static_cast<std::size_t>(last + 1 - first); }

  bool read(std::size_t number, Event& event) const override {
    const std::uint64_t index = first + number, slot = (index - 1) % capacity;
    if (!written(index, slot)) return false;  // the process was killed while writing it
    // In a running job, the fields are read after a state that says they are complete, and before checking
    // whether they have changed since. Pairs with the engine's store of the state, and with the
    // write_barrier() in Recorder::next().
    read_barrier();
    Record record;
    std::memcpy(&record, records.data() + slot * sizeof record, sizeof record);
    read_barrier();
    if (!written(index, slot)) return false;
    check(record, slot);
    event = Event{};
    event.op = static_cast<Op>(record.op);
    event.dtype = static_cast<DType>(record.dtype);
    event.reduce = static_cast<ReduceOp>(record.reduce);
    event.state = static_cast<State>(static_cast<int>(record.state) - 1);
    event.async = record.flags & core::record_async;
    event.awaited = !event.async || record.waited != 0;
    event.matched = event.op != Op::send && event.op != Op::recv;
    event.group = notes.find(NoteKind::comm, record.comm);
    event.scope = notes.find(NoteKind::scope, record.scope);
    event.backend = notes.find(NoteKind::backend, record.backend);
    event.algorithm = notes.find(NoteKind::algorithm, record.algorithm);
    event.sequence = record.sequence;
    const Group& group = groups[event.group];
    event.bytes = full_count(event.op, record.in_count, record.out_count, group.size) *
                  static_cast<std::int64_t>(size_of(event.dtype));
    event.peer = record.root >= 0 && static_cast<std::size_t>(record.root) < group.ranks.size()
                     ? group.ranks[static_cast<std::size_t>(record.root)]
                     : -1;
    event.issued = time(record.issued);
    event.on_device = record.gpu_completed != 0;
    event.started = time(event.on_device ? record.gpu_started : record.started);
    event.completed = time(event.on_device ? record.gpu_completed : record.completed);
    event.exposed_known = !(record.flags & core::record_wait_unknown);
    event.exposed = event.exposed_known ? exposed(record) : 0;
    if (event.scope >= has_phase.size() || !has_phase[event.scope]) event.unknown.add(Field::phase);
    if (by_nccl_profiler && event.backend == by_nccl_profiler) {
      event.unknown.add(Field::reduce);
      event.unknown.add(Field::async);
      event.exposed = 0;  // not known: the interface does not say when the program waits
    }
    if (record.flags & core::record_bytes_only) event.unknown.add(Field::dtype);
    event.call_only = record.flags & core::record_call_only;
    if (group.ranks.empty()) event.unknown.add(Field::group);
    if (record.root >= 0 && event.peer < 0) event.unknown.add(Field::root);
    return true;
  }

 private:
  /// Whether the slot holds this record completely.
  bool written(std::uint64_t index, std::uint64_t slot) const {
    const std::byte* at = records.data() + slot * sizeof(Record);
    std::uint64_t found = 0;
    std::memcpy(&found, at + offsetof(Record, index), sizeof found);
    return found == index && static_cast<RecordState>(at[offsetof(Record, state)]) != RecordState::writing;
  }
  double time(std::uint64_t ticks) const {
    if (ticks == 0) return -1;
    return std::max(0.0,
                    static_cast<double>(static_cast<std::int64_t>(ticks - header.start_ticks)) * header.ns_per_tick);
  }
  double exposed(const Record& r) const {
    // On a device the caller's stream waits, unless the host does.
    const bool on_device = r.gpu_completed != 0;
    const std::uint64_t end = on_device ? r.gpu_completed : r.completed;
    const std::uint64_t begin = r.gpu_waited != 0                           ? r.gpu_waited
                                : on_device || r.flags & core::record_async ? r.waited
                                                                            : r.issued;
    return begin == 0 || end <= begin ? 0 : static_cast<double>(end - begin) * header.ns_per_tick;
  }
  void check(const Record& r, std::uint64_t slot) const {
    constexpr std::int64_t most = std::int64_t{1} << 56;  // times eight bytes still fits 64 bits
    const auto bad = [&](const char* what, auto value) {
      refuse(place,
             fmt::format("record {} at byte {}: {} {}", r.index, records_at + slot * sizeof(Record), what, value));
    };
    if (r.op >= op_count) bad("there is no operation of number", r.op);
    if (r.dtype >= dtype_count) bad("there is no element type of number", r.dtype);
    if (r.reduce >= reduce_op_count) bad("there is no reduction of number", r.reduce);
    if (r.state > RecordState::failed) bad("there is no state of number", static_cast<int>(r.state));
    if (r.in_count < 0 || r.in_count > most) bad("it cannot give this many elements:", r.in_count);
    if (r.out_count < 0 || r.out_count > most) bad("it cannot take this many elements:", r.out_count);
    if (notes.find(NoteKind::comm, r.comm) >= groups.size()) bad("there is no comm of number", r.comm);
    for (const auto& [kind, number, what] :
         {std::tuple(NoteKind::scope, r.scope, "there is no scope of number"),
          std::tuple(NoteKind::backend, std::uint32_t{r.backend}, "there is no backend of number"),
          std::tuple(NoteKind::algorithm, std::uint32_t{r.algorithm}, "there is no algorithm of number")}) {
      if (notes.find(kind, number) == std::numeric_limits<std::uint32_t>::max()) bad(what, number);
    }
    const Group& group = groups[notes.find(NoteKind::comm, r.comm)];
    const std::int64_t larger = std::max(r.in_count, r.out_count);
    if (group.size > 0 && larger > most / group.size) bad("it cannot move this many elements:", larger);
  }
};

TraceHeader read_header(std::span<const std::byte> bytes, const std::string& place) {
  TraceHeader h{};
  if (bytes.size() < core::trace_header_bytes) {
    refuse(place,
           fmt::format("is cut off in its header: {} of {} bytes are there", bytes.size(), core::trace_header_bytes));
  }
  std::memcpy(&h, bytes.data(), sizeof h);
  if (std::memcmp(h.magic, core::trace_magic, sizeof h.magic) != 0) refuse(place, "is not a record file of Medley");
  core::check_format(file_format, place, h.version);
  if (h.record_bytes != sizeof(Record) || h.header_bytes != core::trace_header_bytes) {
    refuse(place, fmt::format("header: records of {} bytes behind {} do not belong to format {}", h.record_bytes,
                              h.header_bytes, h.version));
  }
  if (h.size < 1 || h.size > most_ranks || h.rank < 0 || h.rank >= h.size) {
    refuse(place, fmt::format("header: there is no rank {} of {}", h.rank, h.size));
  }
  if (!(h.ns_per_tick > 0 && h.ns_per_tick <= 1e6)) {
    refuse(place, fmt::format("header: a clock tick cannot be {} ns", h.ns_per_tick));
  }
  if (h.capacity < 1 || h.capacity > (std::uint64_t{1} << 40) || h.issued > (std::uint64_t{1} << 56)) {
    refuse(place, fmt::format("header: {} operations in {} slots", h.issued, h.capacity));
  }
  return h;
}

/// Sets `place` to the rank's own rank in the comm where the members are not recorded.
Group group_of(const std::string& text, const std::string& where, const TraceHeader& header, int context, int& place) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  const bool named = json.is_object() && json.contains("name") && json["name"].is_string();
  if (!named || !(json.contains("ranks") ? json["ranks"].is_array() : json.contains("size")))
    refuse(where, "a comm needs a name and ranks");
  Group group;
  group.name = json["name"].get<std::string>();
  if (context > 1) group.name += fmt::format(" (context {})", context);
  if (!json.contains("ranks")) {  // NCCL gives a rank only its own rank in the comm
    const std::int64_t size = number_in(json, "size", 0);
    place = static_cast<int>(std::clamp<std::int64_t>(number_in(json, "rank", -1), -1, most_ranks));
    if (size < 1 || size > header.size || place < 0 || place >= size)
      refuse(where,
             fmt::format("comm {}: there is no rank {} of {} in a job of {}", group.name, place, size, header.size));
    group.size = static_cast<int>(size);
    return group;
  }
  for (const auto& rank : json["ranks"]) {
    if (!rank.is_number_integer() || rank.get<std::int64_t>() < 0 || rank.get<std::int64_t>() >= header.size) {
      refuse(where, fmt::format("comm {}: {} is not a rank of {}", group.name, rank.dump(), header.size));
    }
    group.ranks.push_back(rank.get<int>());
  }
  if (group.ranks.empty()) refuse(where, fmt::format("comm {} has no ranks", group.name));
  return group;
}

RouteDecision decision_of(const std::string& text, const std::string& where) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  const auto number = [&](const char* key) {
    return json.contains(key) && json[key].is_number_integer() && json[key] >= 0;
  };
  const auto string = [&](const char* key) { return json.contains(key) && json[key].is_string(); };
  if (!json.is_object() || !string("comm") || !string("op") || !string("from") || !string("to") || !string("reason") ||
      !number("from_bytes") || !number("to_bytes") || !number("sequence") || !json.contains("changed") ||
      !json["changed"].is_boolean() || !parse_op(json["op"].get<std::string>())) {
    refuse(where, fmt::format("{} does not say what was decided about which route", text));
  }
  return {json["comm"],       *parse_op(json["op"].get<std::string>()),
          json["from_bytes"], json["to_bytes"],
          json["sequence"],   json["changed"],
          json["from"],       json["to"],
          json["reason"]};
}

/// Every rank of a comm notes it.
void add_decision(RouteDecision decision, Trace& trace) {
  const bool known = std::any_of(trace.decisions.begin(), trace.decisions.end(), [&](const RouteDecision& one) {
    return one.comm == decision.comm && one.sequence == decision.sequence && one.op == decision.op &&
           one.from_bytes == decision.from_bytes;
  });
  if (!known) trace.decisions.push_back(std::move(decision));
}

void read_notes(std::span<const std::byte> bytes, RecordSource& source, Trace& trace, int context) {
  Group unknown;
  unknown.name = "(not noted)";
  source.notes.by_kind[static_cast<std::size_t>(NoteKind::comm)].push_back(trace.group(unknown));
  for (NoteKind kind : {NoteKind::backend, NoteKind::algorithm, NoteKind::scope}) {
    source.notes.by_kind[static_cast<std::size_t>(kind)].push_back(0);
  }
  for (std::size_t at = 0; at + sizeof(Note) <= bytes.size();) {
    Note note;
    std::memcpy(&note, bytes.data() + at, sizeof note);
    if (note.bytes == 0) break;
    read_barrier();  // pairs with the write_barrier() in Recorder::note()
    std::memcpy(&note, bytes.data() + at, sizeof note);
    const std::string where = fmt::format("{}: note at byte {}", source.place, core::trace_header_bytes + at);
    if (note.bytes > bytes.size() - at - sizeof note)
      refuse(where, fmt::format("{} bytes of text do not fit", note.bytes));
    if (note.kind > NoteKind::decision)
      refuse(where, fmt::format("there is no kind of number {}", static_cast<int>(note.kind)));
    const std::string text(reinterpret_cast<const char*>(bytes.data() + at + sizeof note), note.bytes);
    at += (sizeof note + note.bytes + 7) / 8 * 8;
    if (note.kind == NoteKind::decision) add_decision(decision_of(text, where), trace);
    if (note.kind >= NoteKind::job) continue;
    auto& numbers = source.notes.by_kind[static_cast<std::size_t>(note.kind)];
    if (note.number != numbers.size())
      refuse(where, fmt::format("its number is {} where {} was due", note.number, numbers.size()));
    if (note.kind == NoteKind::comm) {
      int place = -1;
      numbers.push_back(trace.group(group_of(text, where, source.header, context, place)));
      if (place >= 0) source.own_places.emplace_back(numbers.back(), place);
    } else {
      numbers.push_back(trace.name(text));
      if (note.kind == NoteKind::backend && text == core::nccl_profiler_backend) {
        source.by_nccl_profiler = numbers.back();
        trace.waits_known = false;
      }
    }
  }
}

void add_rank(std::span<const std::byte> bytes, const std::string& place, int context, std::shared_ptr<Mapping> mapping,
              Trace& trace) {
  auto source = std::make_shared<RecordSource>();
  source->mapping = std::move(mapping);
  source->place = place;
  const TraceHeader header = source->header = read_header(bytes, place);
  if (trace.world != 0 && trace.world != header.size) {
    refuse(place, fmt::format("is of a job of {} ranks, other files of the folder of {}: an earlier run left it",
                              header.size, trace.world));
  }
  source->records_at = std::uint64_t{header.header_bytes} + header.notes_bytes;
  if (source->records_at > bytes.size()) {
    refuse(place, fmt::format("is cut off in its notes: they end at byte {}, the file at {}", source->records_at,
                              bytes.size()));
  }
  read_notes(bytes.subspan(header.header_bytes, header.notes_bytes), *source, trace, context);
  source->groups = trace.groups;
  for (const std::string& name : trace.names) source->has_phase.push_back(!parts_of_scope(name).phase.empty());
  source->records = bytes.subspan(source->records_at);
  const std::uint64_t whole = source->records.size() / sizeof(Record);
  source->capacity = header.capacity;
  source->first = header.issued > header.capacity ? header.issued - header.capacity + 1 : 1;
  source->last = header.issued;
  RankTrace rank;
  const std::uint64_t slots = std::min(header.issued, header.capacity);
  if (whole < slots) {
    if (header.issued > header.capacity) {
      refuse(place, fmt::format("is a ring of {} records that is cut off after {}", header.capacity, whole));
    }
    source->last = whole;
    rank.remarks.push_back(fmt::format("cut off: {} of {} operations are there", whole, header.issued));
  }
  if (header.dropped > 0)
    rank.remarks.push_back("the disk was full: the first operations were overwritten by the last");
  rank.rank = header.rank;
  rank.context = context;
  rank.host.assign(header.host, strnlen(header.host, sizeof header.host));
  rank.pid = header.pid;
  rank.file = place;
  rank.issued = static_cast<std::int64_t>(header.issued);
  rank.start = {header.start_ticks, header.start_monotonic_ns, header.start_real_ns, header.ns_per_tick};
  rank.events = source;
  trace.world = std::max(trace.world, static_cast<int>(header.size));
  trace.ranks.push_back(std::move(rank));
}

/// rank-0003.2.trace is the second context of its process.
int context_of(const std::filesystem::path& path) {
  const std::string number = path.stem().extension().native();
  const int context = number.size() > 1 ? std::atoi(number.c_str() + 1) : 1;
  return context > 1 ? context : 1;
}

}  // namespace

bool is_record_file(const std::filesystem::path& path) {
  char magic[sizeof core::trace_magic] = {};
  std::ifstream file(path, std::ios::binary);
  return file.read(magic, sizeof magic) && std::memcmp(magic, core::trace_magic, sizeof magic) == 0;
}

void read_record_file(const std::filesystem::path& path, Trace& trace) {
  auto mapping = std::make_shared<Mapping>(path);
  add_rank(mapping->bytes(), path.native(), context_of(path), mapping, trace);
}

void join_comms(Trace& trace) {
  std::map<std::uint32_t, std::map<int, int>> members;  // group: rank in it to rank of the job
  for (const RankTrace& rank : trace.ranks) {
    const auto source = std::dynamic_pointer_cast<RecordSource>(rank.events);
    if (!source) continue;
    for (const auto& [group, place] : source->own_places) members[group][place] = rank.rank;
  }
  if (members.empty()) return;
  for (const auto& [number, places] : members) {
    Group& group = trace.groups[number];
    if (!group.ranks.empty() || static_cast<int>(places.size()) != group.size) continue;
    for (const auto& [place, rank] : places) group.ranks.push_back(rank);
  }
  for (const RankTrace& rank : trace.ranks) {
    if (const auto source = std::dynamic_pointer_cast<RecordSource>(rank.events)) source->groups = trace.groups;
  }
}

void read_records(std::span<const std::byte> bytes, const std::string& place, Trace& trace) {
  add_rank(bytes, place, 1, nullptr, trace);
}

}  // namespace medley::trace
