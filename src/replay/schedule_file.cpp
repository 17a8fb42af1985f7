#include "replay/schedule_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <medley/error.hpp>

#include "base/format_version.hpp"
#include "base/json_depth.hpp"
#include "cost/cost.hpp"
#include "model/read_layout.hpp"
#include "plan/export.hpp"

namespace medley::replay {
namespace {

using Json = nlohmann::json;
constexpr std::int64_t most_bytes = std::int64_t{1} << 50;
constexpr int most_ranks = 1 << 20;

constexpr std::string_view schema = "medley.schedule/";  // the format number follows
constexpr core::FileFormat file_format{"schedule", 1, 1, "write it again with medley plan --schedule"};

[[noreturn]] void refuse(const std::string& place, const std::string& sentence) {
  throw Error(ErrorKind::invalid, fmt::format("{}: {}", place, sentence));
}

/// The fields of one entry, with errors that name the position.
struct Fields {
  const Json& json;
  const std::string& place;

  std::int64_t number(const char* key, std::int64_t otherwise, std::int64_t least, std::int64_t most) const {
    const auto found = json.find(key);
    if (found == json.end()) return otherwise;
    const bool good = found->is_number_integer() && *found >= least && *found <= most;
    if (!good)
      refuse(place, fmt::format("{} is {}; it must be a whole number from {} to {}", key, found->dump(), least, most));
    return found->get<std::int64_t>();
  }
  std::string text(const char* key) const {
    const auto found = json.find(key);
    if (found == json.end()) return {};
    if (!found->is_string()) refuse(place, fmt::format("{} must be text", key));
    return found->get<std::string>();
  }
  double share(const char* key) const {
    const auto found = json.find(key);
    if (found == json.end()) return 1;
    if (!found->is_number() || found->get<double>() < 0 || found->get<double>() > 1)
      refuse(place, fmt::format("{} is {}; it must lie between 0 and 1", key, found->dump()));
    return found->get<double>();
  }
  bool flag(const char* key, bool otherwise) const {
    const auto found = json.find(key);
    if (found == json.end()) return otherwise;
    if (!found->is_boolean()) refuse(place, fmt::format("{} is {}; it must be true or false", key, found->dump()));
    return found->get<bool>();
  }
  template <typename E>
  E word(const char* key, std::optional<E> (*parse)(std::string_view) noexcept, E otherwise) const {
    if (!json.contains(key)) return otherwise;
    const auto value = parse(text(key));
    if (!value) refuse(place, fmt::format("{} \"{}\" is not known", key, text(key)));
    return *value;
  }
};

double attention_flops(const Fields& f) {
  const auto extent = [&](const char* key) { return static_cast<double>(f.number(key, 1, 0, most_bytes)); };
  const double pairs = extent("batch") * extent("heads") * extent("queries") * extent("keys");
  const double once = 2 * pairs * (extent("head_dim") + extent("value_dim"));
  return (f.text("phase") == "backward" ? 2.5 : 1.0) * once * (f.flag("causal", true) ? 0.5 : 1.0) * f.share("share");
}

Action action_of(const Json& json, const std::string& place, const RankSchedule& rank) {
  if (!json.is_object()) refuse(place, "must be an object");
  const Fields f{json, place};
  Action a;
  const std::string kind = f.text("kind"), module = f.text("module");
  a.scope = f.text("phase") + (module.empty() ? "" : "/" + module);
  a.dtype = f.word<DType>("dtype", parse_dtype, DType::u8);
  a.token = static_cast<int>(f.number("token", 0, 0, 1 << 30));
  if (kind == "wait") {
    a.kind = Kind::wait;
    return a;
  }
  if (kind == "gemm" || kind == "attention" || kind == "memory") {
    a.kind = Kind::compute;
    const auto extent = [&](const char* key) { return static_cast<double>(f.number(key, 1, 0, most_bytes)); };
    if (kind == "gemm") a.flops = 2 * extent("m") * extent("n") * extent("k") * extent("batch");
    if (kind == "attention") a.flops = attention_flops(f);
    if (kind == "memory") a.memory_bytes = f.number("bytes", 0, 0, most_bytes);
    if (const auto us = json.find("us"); us != json.end()) {
      if (!us->is_number() || !(us->get<double>() >= 0) || us->get<double>() > 1e12)
        refuse(place, fmt::format("us is {}; it must be a time in microseconds", us->dump()));
      a.us = us->get<double>();
    }
    return a;
  }
  if (kind != "comm") refuse(place, fmt::format("kind \"{}\" is not one of gemm, attention, memory, comm, wait", kind));
  if (!json.contains("op")) refuse(place, "op is missing");
  a.op = f.word<Op>("op", parse_op, Op::all_reduce);
  a.reduce = f.word<ReduceOp>("reduce", parse_reduce_op, ReduceOp::sum);
  a.group = f.text("group");
  const auto group = rank.groups.find(a.group);
  if (group == rank.groups.end()) refuse(place, fmt::format("group \"{}\" is not among the groups", a.group));
  a.bytes = f.number("bytes", 0, 0, most_bytes);
  if (a.bytes % static_cast<std::int64_t>(size_of(a.dtype)) != 0) a.dtype = DType::u8;
  a.peer = static_cast<int>(f.number("peer", -1, -1, most_ranks));
  const bool message = a.op == Op::send || a.op == Op::recv;
  const auto& members = group->second;
  if (message && std::find(members.begin(), members.end(), a.peer) == members.end()) {
    refuse(place, fmt::format("peer {} is not in group {}", a.peer, a.group));
  }
  a.batch = static_cast<int>(f.number("batch", 0, 0, 1 << 30));
  a.layer = f.number("layer", -1, -1, 1 << 30);
  a.why = f.text("why");
  return a;
}

RankSchedule rank_from(const Json& json, const std::string& place, int world) {
  if (!json.is_object() || !json.contains("entries") || !json["entries"].is_array()) {
    refuse(place, "is no schedule: it has no list \"entries\"; medley plan --schedule writes one");
  }
  RankSchedule out;
  out.rank = static_cast<int>(Fields{json, place}.number("rank", 0, 0, world > 0 ? world - 1 : 0));
  const Json groups = json.value("groups", Json::object());
  if (!groups.is_object()) refuse(place, "groups must be an object");
  for (const auto& [name, members] : groups.items()) {
    auto& ranks = out.groups[name];
    if (members == "all") continue;  // filled in once the size is known
    if (!members.is_array() || members.empty()) refuse(place, fmt::format("group {} must list ranks", name));
    for (const Json& member : members) {
      if (!member.is_number_integer() || member < 0 || member >= world)
        refuse(place, fmt::format("group {}: {} is not a rank of {}", name, member.dump(), world));
      ranks.push_back(member.get<int>());
    }
    std::sort(ranks.begin(), ranks.end());
    if (std::adjacent_find(ranks.begin(), ranks.end()) != ranks.end())
      refuse(place, fmt::format("group {} names a rank twice", name));
  }
  const Json& entries = json["entries"];
  for (std::size_t i = 0; i < entries.size(); ++i) {
    out.actions.push_back(action_of(entries[i], fmt::format("{}: entries[{}]", place, i), out));
  }
  return out;
}

/// Recreates the other ranks' schedules from the request in the file: the arguments of `medley plan`.
WorldSchedule planned_again(const Json& request, int world, const std::string& place) {
  const Fields f{request, place};
  const auto framework = plan::parse_framework(f.text("framework"));
  if (!framework) refuse(place, fmt::format("plan: framework \"{}\" is not known", f.text("framework")));
  const plan::Model model = plan::read_model(f.text("model"), f.text("as"));
  plan::Layout layout = plan::read_layout(f.text("layout"));
  for (const char* key : {"micro_batch", "global_batch", "seq", "dtype"}) {
    if (!f.text(key).empty()) plan::set_layout_key(layout, key, f.text(key), place + ": plan");
  }
  plan::check(layout, model);
  if (layout.world() != world)
    refuse(place, fmt::format("plan: its layout has {} ranks, the schedule {}", layout.world(), world));
  std::optional<cost::Machine> machine;
  if (!f.text("machine").empty()) machine = cost::find_machine(f.text("machine"));
  WorldSchedule out;
  out.world = world;
  for (int rank = 0; rank < world; ++rank) {
    std::vector<double> us;
    if (machine) us = cost::Step(model, layout, *framework, rank).entry_us(*machine);
    const auto again = plan::schedule_json(plan::make_schedule(model, layout, *framework, rank), layout, rank, us);
    out.ranks.push_back(rank_from(Json(again), place, world));
  }
  return out;
}

void check_schema(const Json& json, const std::string& place) {
  const std::string text = json.is_object() && json.contains("schema") ? Fields{json, place}.text("schema") : "";
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  const bool numbered =
      text.starts_with(schema) && std::from_chars(text.data() + schema.size(), end, number).ptr == end && number > 0;
  if (!numbered)
    refuse(place,
           "is no schedule (schema medley.schedule/1); medley plan --schedule and medley trace --schedule write one");
  core::check_format(file_format, place, number);
}

}  // namespace

std::size_t batch_end(const std::vector<Action>& actions, std::size_t first) {
  std::size_t end = first + 1;
  while (actions[first].batch != 0 && end < actions.size() && actions[end].kind == Kind::comm &&
         actions[end].batch == actions[first].batch)
    ++end;
  return end;
}

std::int64_t scaled_bytes(std::int64_t bytes, DType dtype, double scale) {
  if (scale == 1 || bytes == 0) return bytes;
  const auto size = static_cast<std::int64_t>(size_of(dtype));
  return std::max<std::int64_t>(1, std::llround(static_cast<double>(bytes / size) * scale)) * size;
}

WorldSchedule schedule_from_json(const Json& json, const std::string& place) {
  check_schema(json, place);
  const int world = static_cast<int>(Fields{json, place}.number("world", 0, 0, most_ranks));
  WorldSchedule out;
  out.world = world;
  if (json.contains("ranks")) {
    const Json& all = json["ranks"];
    if (!all.is_array() || all.size() != static_cast<std::size_t>(world))
      refuse(place, fmt::format("ranks must list {} schedules", world));
    for (std::size_t r = 0; r < all.size(); ++r) {
      out.ranks.push_back(rank_from(all[r], fmt::format("{}: ranks[{}]", place, r), world));
      if (out.ranks.back().rank != static_cast<int>(r))
        refuse(place, fmt::format("ranks[{}] is of rank {}", r, out.ranks.back().rank));
    }
    return out;
  }
  if (world > 1 && world <= 1024 && json.contains("plan") && json["plan"].is_object())
    return planned_again(json["plan"], world, place);
  out.ranks.push_back(rank_from(json, place, world));
  if (world == 0 || world == 1) return out;
  for (const auto& [name, ranks] : out.ranks[0].groups) {
    if (static_cast<int>(ranks.size()) != world) {
      refuse(place, fmt::format("holds rank {} of {} alone; write all of them with medley plan --rank all --schedule",
                                out.ranks[0].rank, world));
    }
  }
  return out;  // every group is the world: all ranks do the same
}

WorldSchedule read_schedule(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) refuse(path, "is a folder; name the file of a schedule");
  std::ifstream file(path, std::ios::binary);
  if (!file) refuse(path, "cannot be opened");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  if (core::json_depth(text) > core::deepest_json)
    refuse(path, fmt::format("nests more than {} brackets; a schedule does not", core::deepest_json));
  try {
    return schedule_from_json(Json::parse(text), path);
  } catch (const Json::parse_error& error) {
    refuse(path, fmt::format("is not JSON from byte {} on", error.byte));
  } catch (const Json::out_of_range&) {
    refuse(path, "holds a number that is too large");
  }
}

RankSchedule WorldSchedule::of(int rank, int size) const {
  if (world > 0 && world != size) {
    throw Error(ErrorKind::invalid,
                fmt::format("the schedule is of {} ranks; run it with -n {}, not {}", world, world, size));
  }
  RankSchedule out = ranks.size() > 1 ? ranks[static_cast<std::size_t>(rank)] : ranks[0];
  out.rank = rank;
  for (auto& [name, members] : out.groups) {
    if (!members.empty()) continue;
    for (int r = 0; r < size; ++r) members.push_back(r);
  }
  for (const Action& action : out.actions) {
    if (ranks.size() == 1 && size > 1 && (action.op == Op::send || action.op == Op::recv)) {
      throw Error(ErrorKind::invalid,
                  "the schedule holds one rank with messages to others; write all ranks with medley plan "
                  "--rank all --schedule");
    }
  }
  return out;
}

}  // namespace medley::replay
