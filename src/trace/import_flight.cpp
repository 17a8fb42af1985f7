// PyTorch's flight recorder: one file per rank with the process groups and the last collectives. Sizes are
// lists of the shapes of a rank's inputs and outputs; states are scheduled, started, completed.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <medley/error.hpp>

#include "trace/import.hpp"
#include "trace/import_parts.hpp"
#include "trace/pickle.hpp"
#include "trace/sizes.hpp"

namespace medley::trace {
namespace {

using Json = nlohmann::json;

constexpr const char* unused = "frames";  // stack frames are most of a dump, and nothing here needs them

/// Only the file's name gives the rank: nccl_trace_rank_3, rank3.json, …3.
int rank_of_name(const std::string& place, std::size_t otherwise) {
  const std::string name = std::filesystem::path(place).stem().string();
  const std::size_t word = name.rfind("rank");
  std::size_t at = word == std::string::npos ? name.find_last_not_of("0123456789") : word + 3;
  at = at == std::string::npos ? 0 : at + 1;
  while (at < name.size() && !std::isdigit(static_cast<unsigned char>(name[at]))) ++at;
  std::string digits;
  while (at < name.size() && std::isdigit(static_cast<unsigned char>(name[at])) && digits.size() < 6)
    digits += name[at++];
  return digits.empty() ? static_cast<int>(otherwise) : std::stoi(digits);
}

/// Elements and bytes of all input tensors or all output tensors.
struct Side {
  std::int64_t elements = 0;
  DType dtype = DType::u8;
};
Side side_of(const Json& entry, const char* sizes, const char* dtypes, const std::string& where) {
  Side side;
  if (const auto types = entry.find(dtypes);
      types != entry.end() && types->is_array() && !types->empty() && (*types)[0].is_string()) {
    const std::string name = (*types)[0].get<std::string>();
    const auto dtype = foreign_dtype(name);
    if (!dtype) refuse_import(where, fmt::format("\"{}\" is not an element type that is known", name));
    side.dtype = *dtype;
  } else {
    side.dtype = DType::f32;  // PyTorch's recorder writes it since version 2.2
  }
  const auto shapes = entry.find(sizes);
  if (shapes == entry.end() || !shapes->is_array()) return side;
  for (const Json& shape : *shapes) {
    if (!shape.is_array()) refuse_import(where, fmt::format("{} must be a list of shapes", sizes));
    std::int64_t elements = 1;
    for (const Json& extent : shape) {
      if (!extent.is_number_integer() || extent.get<std::int64_t>() < 0 ||
          extent.get<std::int64_t>() > (std::int64_t{1} << 50)) {
        refuse_import(where, fmt::format("{}: {} is not an extent", sizes, shown(extent)));
      }
      const std::int64_t e = extent.get<std::int64_t>();
      if (e > 0 && elements > (std::int64_t{1} << 52) / e)
        refuse_import(where, fmt::format("{}: the tensor is too large", sizes));
      elements *= e;
    }
    side.elements += elements;
    if (side.elements > (std::int64_t{1} << 52))
      refuse_import(where, fmt::format("{}: the tensors are too large", sizes));
  }
  return side;
}

std::map<std::string, Group> groups_of(const Json& root) {
  std::map<std::string, Group> groups;
  const auto config = root.find("pg_config");
  if (config == root.end() || !config->is_object()) return groups;
  for (const auto& [key, value] : config->items()) {
    if (!value.is_object()) continue;
    Group group;
    const std::string desc = text_in(value, "desc");
    group.name = desc.empty() || desc == "undefined" ? key : fmt::format("{} ({})", key, desc);
    if (value.contains("ranks")) group.ranks = rank_list(value["ranks"], 0);
    group.size = static_cast<int>(group.ranks.size());
    groups[key] = group;
  }
  return groups;
}

/// The last collective of each group that is known to be complete, by group number. gloo never marks single
/// entries.
std::map<std::string, std::int64_t> completed_of(const Json& root) {
  std::map<std::string, std::int64_t> out;
  const auto status = root.find("pg_status");
  if (status == root.end() || !status->is_object()) return out;
  for (const auto& [key, value] : status->items()) {
    if (value.is_object()) out[key] = number_in(value, "last_completed_collective", -1);
  }
  return out;
}

Group group_of(const Json& entry, const std::map<std::string, Group>& known) {
  std::string key = text_in(entry, "pg_id"), desc;
  if (const auto pair = entry.find("process_group"); pair != entry.end() && pair->is_array() && !pair->empty()) {
    if ((*pair)[0].is_string()) key = (*pair)[0].get<std::string>();
    if (pair->size() > 1 && (*pair)[1].is_string()) desc = (*pair)[1].get<std::string>();
  }
  if (const auto found = known.find(key); found != known.end()) return found->second;
  Group group;
  // gloo lists its ranks under an empty name; it means those of the default group.
  if (const auto unnamed = known.find(""); unnamed != known.end() && desc == "default_pg") group = unnamed->second;
  group.name = desc.empty() ? key : fmt::format("{} ({})", key, desc);
  return group;
}

/// "nccl:send 0->1", "nccl:recv 1<-0".
std::int64_t peer_of(const std::string& name, const Group& group) {
  const std::size_t arrow = name.find_first_of("<-");
  if (arrow == std::string::npos) return -1;
  const std::size_t digits = name.find_first_of("0123456789", arrow);
  if (digits == std::string::npos) return -1;
  const int number = std::atoi(name.substr(digits, 6).c_str());
  return static_cast<std::size_t>(number) < group.ranks.size() ? group.ranks[static_cast<std::size_t>(number)] : number;
}

Event event_of(const Json& entry, const std::string& where, Trace& trace, const std::map<std::string, Group>& groups,
               const std::map<std::string, std::int64_t>& completed) {
  const std::string name = text_in(entry, "profiling_name");
  const auto op = foreign_op(name);
  if (!op) refuse_import(where, fmt::format("profiling_name \"{}\" is not an operation that is known", name));
  const Group group = group_of(entry, groups);
  Event event;
  event.op = *op;
  event.matched = !flag_in(entry, "is_p2p", false);
  event.group = trace.group(group);
  event.backend = trace.name(name.substr(0, name.find(':')));
  const std::int64_t sequence =
      number_in(entry, event.matched ? "collective_seq_id" : "p2p_seq_id", number_in(entry, "seq_id", 0));
  event.sequence = static_cast<std::uint64_t>(std::clamp<std::int64_t>(sequence, 0, std::int64_t{1} << 39));
  const Side in = side_of(entry, "input_sizes", "input_dtypes", where),
             out = side_of(entry, "output_sizes", "output_dtypes", where);
  event.op = told_by_sides(*op, in.elements, out.elements);
  event.dtype = in.elements > 0 ? in.dtype : out.dtype;
  event.bytes =
      checked_bytes(full_count(event.op, in.elements, out.elements, std::max(1, group.size)), event.dtype, where);
  if (event.op == Op::send || event.op == Op::recv) event.peer = peer_of(name, group);
  event.async = true;
  event.unknown = {Field::reduce, Field::phase, Field::async};
  if (event.peer < 0) event.unknown.add(Field::root);
  if (group.ranks.empty()) event.unknown.add(Field::group);
  event.issued = real_in(entry, "time_created_ns", -1);
  event.started = real_in(entry, "time_discovered_started_ns", -1);
  const double ms = real_in(entry, "duration_ms", -1);
  event.completed = real_in(entry, "time_discovered_completed_ns", -1);
  if (ms >= 0 && event.issued >= 0) {
    event.completed = std::max(event.started, event.issued) + ms * 1e6;
    event.on_device = event.started >= 0;  // the time between its CUDA events
  }
  const std::string state = text_in(entry, "state");
  const auto last = completed.find(text_in(entry, "pg_id"));
  const bool behind = event.matched && last != completed.end() && sequence > 0 && sequence <= last->second;
  event.state = state == "completed" || behind ? State::complete : state == "started" ? State::started : State::issued;
  return event;
}

void import_dump(const Json& root, const std::string& place, Trace& trace) {
  const Json* entries = root.is_array() ? &root : nullptr;
  if (root.is_object() && root.contains("entries")) entries = &root["entries"];
  if (!entries || !entries->is_array()) {
    refuse_import(place, "is no dump of PyTorch's flight recorder: it has no list \"entries\"");
  }
  static const Json none = Json::object();
  const Json& facts = root.is_object() ? root : none;
  const auto groups = groups_of(facts);
  const auto completed = completed_of(facts);
  auto list = std::make_shared<EventList>();
  double first = -1;
  for (std::size_t i = 0; i < entries->size(); ++i) {
    const std::string where = fmt::format("{}: entries[{}]", place, i);
    const Json& entry = (*entries)[i];
    if (!entry.is_object()) refuse_import(where, "must be an object");
    if (text_in(entry, "profiling_name").find("coalesced") != std::string::npos &&
        !foreign_op(text_in(entry, "profiling_name"))) {
      continue;  // the entry of a whole batch; its members have their own entries
    }
    list->events.push_back(event_of(entry, where, trace, groups, completed));
    if (first < 0) first = list->events.back().issued;
  }
  // Nanoseconds since 1970 do not fit a double, so times are relative to the first entry.
  for (Event& event : list->events) {
    for (double* time : {&event.issued, &event.started, &event.completed}) {
      if (*time >= 0) *time = std::max(0.0, *time - first);
    }
  }
  RankTrace rank;
  rank.rank = rank_of_name(place, trace.ranks.size());
  rank.file = place;
  rank.issued = static_cast<std::int64_t>(list->events.size());
  rank.start.real_ns = first > 0 ? static_cast<std::int64_t>(first) : 0;
  rank.events = std::move(list);
  for (const auto& [key, group] : groups) trace.world = std::max(trace.world, group.size);
  trace.ranks.push_back(std::move(rank));
  trace.waits_known = false;
  trace.starts_exact = false;  // its watchdog finds them some milliseconds later
  trace.format = "pytorch flight recorder";
}

}  // namespace

void import_flight_json(std::string_view text, const std::string& place, Trace& trace) {
  import_dump(parse_import(text, place, unused), place, trace);
}

void import_flight_pickle(std::string_view bytes, const std::string& place, Trace& trace) {
  import_dump(read_pickle(bytes, place, unused), place, trace);
}

}  // namespace medley::trace
