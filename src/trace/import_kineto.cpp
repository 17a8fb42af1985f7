// Chrome traces of torch.profiler: record_param_comms on the host says what was issued, the nccl kernel of
// the same External id how long it ran. Elements are counted as one rank gives and takes them.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "trace/import.hpp"
#include "trace/import_parts.hpp"
#include "trace/sizes.hpp"

namespace medley::trace {
namespace {

using Json = nlohmann::json;

struct Kernel {
  double begin = -1, end = -1;
};

bool is_issue(const Json& event) {
  return text_in(event, "name").find("record_param_comms") != std::string::npos && event.contains("args") &&
         event["args"].is_object() && event["args"].contains("Collective name");
}

/// Kernels and their ranges by the id that ties them to the host.
std::map<std::int64_t, Kernel> kernels_of(const Json& events) {
  std::map<std::int64_t, Kernel> out;
  for (const Json& event : events) {
    if (!event.is_object() || text_in(event, "cat") != "kernel" ||
        text_in(event, "name").find("nccl") == std::string::npos)
      continue;
    if (!event.contains("args") || !event["args"].is_object()) continue;
    const std::int64_t id = number_in(event["args"], "External id", -1);
    const double begin = real_in(event, "ts", -1) * 1e3, length = real_in(event, "dur", 0) * 1e3;
    if (id < 0 || begin < 0) continue;
    Kernel& kernel = out[id];
    kernel.begin = kernel.begin < 0 ? begin : std::min(kernel.begin, begin);
    kernel.end = std::max(kernel.end, begin + length);
  }
  return out;
}

class Importer {
 public:
  Importer(const std::string& place, Trace& trace)
      : place_(place), trace_(trace), list_(std::make_shared<EventList>()) {}

  void read(const Json& root) {
    const Json* events = root.is_array() ? &root : nullptr;
    if (root.is_object() && root.contains("traceEvents")) events = &root["traceEvents"];
    if (!events || !events->is_array())
      refuse_import(place_, "is no Chrome trace: it has no list \"traceEvents\"");
    kernels_ = kernels_of(*events);
    for (std::size_t i = 0; i < events->size(); ++i) {
      const Json& event = (*events)[i];
      if (event.is_object() && is_issue(event)) add(event, fmt::format("{}: traceEvents[{}]", place_, i));
    }
    if (list_->events.empty()) {
      refuse_import(
          place_,
          "holds no record_param_comms: profile with PyTorch 2.1 or later, and with the CPU activity on");
    }
    finish(root);
  }

 private:
  void add(const Json& event, const std::string& where) {
    const Json& args = event["args"];
    const std::string name = text_in(args, "Collective name");
    const auto op = foreign_op(name);
    if (!op) return;  // "init", "wait": nothing is sent
    const std::int64_t size = std::clamp<std::int64_t>(number_in(args, "Group size", 0), 0, 1 << 20);
    const std::string type = text_in(args, "dtype");
    const auto dtype = foreign_dtype(type);
    if (!dtype) refuse_import(where, fmt::format("dtype \"{}\" is not known", type));
    Event out;
    out.op = *op;
    out.dtype = *dtype;
    const std::int64_t in = number_in(args, "In msg nelems", 0), given = number_in(args, "Out msg nelems", 0);
    out.op = told_by_sides(*op, in, given);
    checked_bytes(in, *dtype, where);
    checked_bytes(given, *dtype, where);
    // Lists of tensors are summed on one side only by some versions; the larger side rules where both should
    // be equal.
    out.bytes = checked_bytes(
        std::min(full_count(out.op, in, given, std::max<std::int64_t>(1, size)), std::int64_t{1} << 52), *dtype,
        where);
    Group group;
    const std::string description = text_in(args, "Process Group Description");
    group.name = text_in(args, "Process Group Name");
    if (!description.empty() && description != "undefined") group.name += fmt::format(" ({})", description);
    if (args.contains("Process Group Ranks")) group.ranks = rank_list(args["Process Group Ranks"], size);
    group.size = static_cast<int>(size);
    if (group.ranks.size() != static_cast<std::size_t>(size)) group.ranks.clear();
    out.group = trace_.group(group);
    out.matched = *op != Op::send && *op != Op::recv && args.contains("Seq");
    out.sequence = static_cast<std::uint64_t>(
        std::clamp<std::int64_t>(number_in(args, "Seq", 0), 0, std::int64_t{1} << 39));
    if (*op == Op::send) out.peer = number_in(args, "Dst Rank", -1);
    if (*op == Op::recv) out.peer = number_in(args, "Src Rank", -1);
    out.unknown = {Field::reduce, Field::phase, Field::async};
    if (rooted(out.op) || out.peer < 0) out.unknown.add(Field::root);
    if (group.ranks.empty()) out.unknown.add(Field::group);
    times(event, args, out);
    list_->events.push_back(out);
  }

  void times(const Json& event, const Json& args, Event& out) {
    out.async = true;
    out.issued = real_in(event, "ts", 0) * 1e3;
    const auto kernel = kernels_.find(number_in(args, "External id", -1));
    if (kernel != kernels_.end()) {
      out.started = kernel->second.begin;
      out.completed = kernel->second.end;
    } else {
      out.started = out.issued;
      out.completed = out.issued + real_in(event, "dur", 0) * 1e3;
    }
    if (first_ < 0 || out.issued < first_) first_ = out.issued;
  }

  void finish(const Json& root) {
    std::stable_sort(list_->events.begin(), list_->events.end(),
                     [](const Event& a, const Event& b) { return a.issued < b.issued; });
    for (Event& event : list_->events) {
      for (double* time : {&event.issued, &event.started, &event.completed})
        *time = std::max(0.0, *time - first_);
    }
    RankTrace rank;
    rank.rank = static_cast<int>(trace_.ranks.size());
    if (root.is_object() && root.contains("distributedInfo") && root["distributedInfo"].is_object()) {
      rank.rank = static_cast<int>(
          std::clamp<std::int64_t>(number_in(root["distributedInfo"], "rank", rank.rank), 0, 1 << 20));
      trace_.world =
          std::max(trace_.world, static_cast<int>(std::clamp<std::int64_t>(
                                     number_in(root["distributedInfo"], "world_size", 0), 0, 1 << 20)));
    }
    rank.file = place_;
    rank.start.real_ns = static_cast<std::int64_t>(std::min(first_, 9e18));
    rank.issued = static_cast<std::int64_t>(list_->events.size());
    rank.events = list_;
    trace_.ranks.push_back(std::move(rank));
    trace_.waits_known = false;
    trace_.format = "chrome trace of torch.profiler";
  }

  const std::string& place_;
  Trace& trace_;
  std::shared_ptr<EventList> list_;
  std::map<std::int64_t, Kernel> kernels_;
  double first_ = -1;
};

}  // namespace

void import_kineto(std::string_view text, const std::string& place, Trace& trace) {
  Importer(place, trace).read(parse_import(text, place));
}

}  // namespace medley::trace
