// Chakra execution traces: nodes of a graph in protobuf, each preceded by its length, or the JSON that
// Chakra's feeder reads. comm_size is one rank's input. Groups are numbers; comm_group.json in the same
// folder lists their ranks.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>

#include "trace/import.hpp"
#include "trace/import_parts.hpp"

namespace medley::trace {
namespace {

constexpr std::size_t most_node_bytes = std::size_t{64} << 20;

/// The communication fields of one node.
struct ChakraNode {
  std::uint64_t id = 0, kind = 0;
  std::string name, group;
  double start_us = 0, duration_us = 0;
  std::int64_t type = -1, bytes = -1, root = -1, source = -1, destination = -1;
  bool on_host = false;
};

/// Reads protobuf's wire format from memory.
class Wire {
 public:
  Wire(std::string_view bytes, const std::string& where) : bytes_(bytes), where_(where) {}
  bool more() const { return at_ < bytes_.size(); }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (!more()) refuse_import(where_, "a number of its protobuf is cut off");
      const auto byte = static_cast<unsigned char>(bytes_[at_++]);
      value |= std::uint64_t{byte & 127u} << shift;
      if (byte < 128) return value;
    }
    refuse_import(where_, "a number of its protobuf has more than ten bytes");
  }
  /// The next field: its number, and its value as number or text.
  std::uint64_t field(std::uint64_t& number, std::string_view& text) {
    const std::uint64_t key = varint();
    text = {};
    number = 0;
    switch (key & 7) {
      case 0: number = varint(); break;
      case 1: text = take(8); break;
      case 2: text = take(varint()); break;
      case 5: text = take(4); break;
      default: refuse_import(where_, fmt::format("there is no protobuf field of wire type {}", key & 7));
    }
    return key >> 3;
  }

 private:
  std::string_view take(std::uint64_t size) {
    if (size > bytes_.size() - at_) refuse_import(where_, "a field of its protobuf is cut off");
    const std::string_view out = bytes_.substr(at_, static_cast<std::size_t>(size));
    at_ += static_cast<std::size_t>(size);
    return out;
  }
  std::string_view bytes_;
  std::size_t at_ = 0;
  const std::string& where_;
};

void set_attribute(ChakraNode& node, std::string_view name, std::int64_t number, std::string_view text) {
  if (name == "comm_type") node.type = number;
  if (name == "comm_size") node.bytes = number;
  if (name == "comm_src") node.source = number;
  if (name == "comm_dst") node.destination = number;
  if (name == "root_rank") node.root = number;
  if (name == "is_cpu_op") node.on_host = number != 0;
  if (name == "pg_name") node.group = text.empty() ? std::to_string(number) : std::string(text);
}

ChakraNode node_of(std::string_view message, const std::string& where) {
  ChakraNode node;
  Wire wire(message, where);
  std::uint64_t number = 0;
  std::string_view text;
  while (wire.more()) {
    switch (wire.field(number, text)) {
      case 1: node.id = number; break;
      case 2: node.name = std::string(text); break;
      case 3: node.kind = number; break;
      case 6: node.start_us = static_cast<double>(number); break;
      case 7: node.duration_us = static_cast<double>(number); break;
      case 10: {
        Wire attribute(text, where);
        std::string_view name, value;
        std::int64_t whole = 0;
        std::uint64_t raw = 0;
        std::string_view part;
        while (attribute.more()) {
          const std::uint64_t field = attribute.field(raw, part);
          if (field == 1) name = part;
          else if (field == 29) value = part;
          else if (field >= 7 && field <= 27) whole = static_cast<std::int64_t>(raw);
        }
        set_attribute(node, name, whole, value);
        break;
      }
      default: break;
    }
  }
  return node;
}

std::optional<Op> op_of(const ChakraNode& node) {
  static constexpr Op ops[] = {Op::all_reduce, Op::reduce,     Op::all_gather,     Op::gather,         Op::scatter,
                               Op::broadcast,  Op::all_to_all, Op::reduce_scatter, Op::reduce_scatter, Op::barrier};
  if (node.kind == 5) return Op::send;
  if (node.kind == 6) return Op::recv;
  if (node.type >= 0 && node.type < 10) return ops[node.type];
  return foreign_op(node.name);
}

/// The groups of the comm_group.json in the trace's folder: name to ranks.
std::map<std::string, std::vector<int>> groups_beside(const std::string& place) {
  std::map<std::string, std::vector<int>> out;
  std::ifstream file(std::filesystem::path(place).parent_path() / "comm_group.json");
  const auto json = file ? nlohmann::json::parse(file, nullptr, false) : nlohmann::json();
  if (!json.is_object()) return out;
  for (const auto& [name, ranks] : json.items()) out[name] = rank_list(ranks, 0);
  return out;
}

/// medley.3.et, chakra.0.et, rank-2.et: the last number of the name.
int rank_of_file(const std::string& place, std::size_t otherwise) {
  std::string digits;
  const std::string stem = std::filesystem::path(place).stem().string();
  for (std::size_t at = stem.size(); at > 0 && digits.size() < 6; --at) {
    const bool digit = stem[at - 1] >= '0' && stem[at - 1] <= '9';
    if (digit) digits.insert(digits.begin(), stem[at - 1]);
    if (!digit && !digits.empty()) break;
  }
  return digits.empty() ? static_cast<int>(otherwise) : std::atoi(digits.c_str());
}

class ChakraImporter {
 public:
  ChakraImporter(const std::string& place, Trace& trace)
      : place_(place), trace_(trace), groups_(groups_beside(place)) {}

  void take(const ChakraNode& node) {
    ++count_;
    if (node.kind < 5 || node.kind > 7) return;
    (node.on_host ? on_host_ : on_device_).push_back(node);
  }

  void finish() {
    // A converted profile has every collective twice: the call and its kernel. The kernels are what ran.
    std::vector<ChakraNode>& nodes = on_device_.empty() ? on_host_ : on_device_;
    if (nodes.empty())
      refuse_import(place_,
                    fmt::format("holds no communication: none of its {} nodes is a collective or a message", count_));
    std::stable_sort(nodes.begin(), nodes.end(),
                     [](const ChakraNode& a, const ChakraNode& b) { return a.start_us < b.start_us; });
    auto list = std::make_shared<EventList>();
    for (const ChakraNode& node : nodes) add(node, *list);
    if (list->events.empty()) refuse_import(place_, "none of its communication nodes says which collective it is");
    RankTrace rank;
    rank.rank = rank_of_file(place_, trace_.ranks.size());
    rank.file = place_;
    if (unsized_ > 0)
      rank.remarks.push_back(
          fmt::format("{} of {} nodes have no comm_size: their sizes are unknown", unsized_, list->events.size()));
    if (nameless_ > 0)
      rank.remarks.push_back(
          fmt::format("{} communication nodes are left out: they do not say which collective they are", nameless_));
    rank.issued = static_cast<std::int64_t>(list->events.size());
    rank.events = std::move(list);
    trace_.ranks.push_back(std::move(rank));
    for (const auto& [name, ranks] : groups_)
      for (const int r : ranks) trace_.world = std::max(trace_.world, r + 1);
    trace_.waits_known = false;
    trace_.format = "chakra execution trace";
  }

 private:
  void add(const ChakraNode& node, EventList& list) {
    const auto op = op_of(node);
    if (!op) {
      ++nameless_;
      return;
    }
    Event event;
    event.op = *op;
    Group group;
    group.name = node.group.empty() ? "(not recorded)" : node.group;
    if (const auto known = groups_.find(node.group); known != groups_.end()) group.ranks = known->second;
    group.size = static_cast<int>(group.ranks.size());
    event.group = trace_.group(group);
    event.matched = false;
    event.async = true;
    event.unknown = {Field::dtype, Field::reduce, Field::phase, Field::async};
    if (group.ranks.empty()) event.unknown.add(Field::group);
    if (node.bytes >= 0 && node.bytes < (std::int64_t{1} << 50)) {
      const bool shard = *op == Op::all_gather || *op == Op::gather;
      event.bytes = node.bytes * (shard ? std::max(1, group.size) : 1);
      if (shard && group.size == 0) event.unknown.add(Field::bytes);
    } else if (*op != Op::barrier) {
      event.unknown.add(Field::bytes);
      ++unsized_;
    }
    event.peer = *op == Op::send ? node.destination : *op == Op::recv ? node.source : node.root;
    if (event.peer < 0 || event.peer >= most_ranks) {
      event.peer = -1;
      event.unknown.add(Field::root);
    }
    if (first_ < 0) first_ = node.start_us;
    event.issued = event.started = std::max(0.0, node.start_us - first_) * 1e3;
    event.completed = event.issued + node.duration_us * 1e3;
    event.on_device = !node.on_host;
    list.events.push_back(event);
  }

  const std::string& place_;
  Trace& trace_;
  std::map<std::string, std::vector<int>> groups_;
  std::vector<ChakraNode> on_host_, on_device_;
  std::size_t count_ = 0, unsized_ = 0, nameless_ = 0;
  double first_ = -1;
};

}  // namespace

void import_chakra(ByteStream& in, Trace& trace) {
  ChakraImporter importer(in.name(), trace);
  std::uint64_t at = 0;
  std::string message;
  for (std::size_t number = 0;; ++number) {
    const std::string where = fmt::format("{}: message at byte {}", in.name(), at);
    std::uint64_t size = 0;
    int shift = 0;
    for (;; shift += 7) {
      const auto byte = in.sbumpc();
      if (byte == std::streambuf::traits_type::eof()) {
        if (shift == 0) return importer.finish();
        refuse_import(where, "its length is cut off");
      }
      ++at;
      size |= static_cast<std::uint64_t>(byte & 127) << shift;
      if (byte < 128) break;
      if (shift > 28) refuse_import(where, "its length is too large for a node");
    }
    if (size > most_node_bytes) refuse_import(where, fmt::format("a node cannot have {} bytes", size));
    message.resize(static_cast<std::size_t>(size));
    if (in.sgetn(message.data(), static_cast<std::streamsize>(size)) != static_cast<std::streamsize>(size))
      refuse_import(where, fmt::format("is cut off: {} bytes were due", size));
    at += size;
    if (number > 0) importer.take(node_of(message, where));  // the first describes the whole trace
  }
}

void import_chakra_json(std::string_view text, const std::string& place, Trace& trace) {
  const nlohmann::json root = parse_import(text, place);
  const auto graph = root.is_object() ? root.find("workload_graph") : root.end();
  if (!root.is_object() || graph == root.end() || !graph->is_array())
    refuse_import(place, "is no Chakra trace: it has no list \"workload_graph\"");
  ChakraImporter importer(place, trace);
  for (std::size_t i = 0; i < graph->size(); ++i) {
    const nlohmann::json& entry = (*graph)[i];
    if (!entry.is_object()) refuse_import(fmt::format("{}: workload_graph[{}]", place, i), "must be an object");
    ChakraNode node;
    node.kind = static_cast<std::uint64_t>(std::max<std::int64_t>(0, number_in(entry, "NodeType", 0)));
    node.name = text_in(entry, "Name");
    node.group = text_in(entry, "pg_name");
    node.type = number_in(entry, "comm_type", -1);
    node.bytes = number_in(entry, "comm_size", -1);
    node.source = number_in(entry, "comm_src", -1);
    node.destination = number_in(entry, "comm_dst", -1);
    node.root = number_in(entry, "root_rank", -1);
    node.duration_us = real_in(entry, "runtime", 0);
    node.start_us = static_cast<double>(i);  // without times, the order of the file
    const auto host = entry.find("is_cpu_op");
    node.on_host = host != entry.end() && host->is_boolean() && host->get<bool>();
    importer.take(node);
  }
  importer.finish();
}

}  // namespace medley::trace
