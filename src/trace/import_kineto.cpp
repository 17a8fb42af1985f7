// Chrome traces of torch.profiler. record_param_comms on the host says what was issued; the nccl kernel that
// belongs to it says how long it ran. Older profiles have no arguments there: the annotation
// ("nccl:all_reduce") and the kernel's name then give the operation, and sizes and groups are unknown.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>

#include "trace/import.hpp"
#include "trace/import_parts.hpp"
#include "trace/kineto_events.hpp"
#include "trace/sizes.hpp"

namespace medley::trace {
namespace {

constexpr std::string_view step_mark = "ProfilerStep#";

/// A host event that issues or annotates a collective.
struct Issue {
  Event event;
  std::int64_t thread = 0, id = -1;
  double begin = 0, end = 0;  ///< ns, on the host
};

struct NcclKernel {
  Event event;             ///< from its arguments or its name
  bool described = false;  ///< has arguments of its own
  bool named = false;      ///< its name gives the operation
  double begin = -1, end = -1;
  std::int64_t id = -1;
};

/// A CUDA runtime call that launched a kernel: it links the kernel to the thread and time of its issue.
struct Launch {
  std::int64_t id = -1, thread = 0;
  double time = 0;
};

class KinetoImporter {
 public:
  KinetoImporter(const std::string& place, Trace& trace) : place_(place), trace_(trace) {}

  void read(ByteStream& in) {
    const KinetoInfo info = read_kineto_events(in, [this](KinetoEvent& event) { take(event); });
    if (!info.has_events) refuse_import(place_, "is no Chrome trace: it has no list \"traceEvents\"");
    join_annotations();
    join_kernels();
    if (issues_.empty()) {
      refuse_import(place_, fmt::format("holds no communication: none of its {} events is a record_param_comms with "
                                        "arguments, an annotation \"nccl:…\" or an nccl kernel",
                                        count_));
    }
    finish(info);
  }

 private:
  void take(KinetoEvent& e) {
    ++count_;
    if (e.ts < 0) return;
    const bool kernel = e.category == "kernel" || e.category == "Kernel";
    if (kernel) {
      if (e.name.find("nccl") != std::string::npos) take_kernel(e);
    } else if (!e.collective.empty() && e.name.find("record_param_comms") != std::string::npos) {
      if (foreign_op(e.collective))
        issues_.push_back({described(e), e.tid, e.external_id, e.ts * 1e3, (e.ts + e.dur) * 1e3});
    } else if (e.name.starts_with("nccl:") && e.category == "user_annotation") {
      if (const auto op = foreign_op(e.name))
        annotations_.push_back({of_unknown_size(*op), e.tid, e.external_id, e.ts * 1e3, (e.ts + e.dur) * 1e3});
    } else if (e.name.starts_with(step_mark) && e.category != "gpu_user_annotation") {
      marks_.emplace_back(e.ts * 1e3, (e.ts + e.dur) * 1e3);
    } else if (e.external_id >= 0 && e.name.find("Launch") != std::string::npos) {
      launches_.push_back({e.external_id, e.tid, e.ts * 1e3});
    }
  }

  void take_kernel(const KinetoEvent& e) {
    NcclKernel kernel;
    kernel.begin = e.ts * 1e3;
    kernel.end = (e.ts + e.dur) * 1e3;
    if (!e.collective.empty() && foreign_op(e.collective)) {
      kernel.event = described(e);
      kernel.described = true;
    } else if (const auto op = foreign_op(e.name); op && *op != Op::send && *op != Op::recv) {
      kernel.event = of_unknown_size(*op);
      kernel.named = true;  // SendRecv may be an all_to_all, a gather, a message …: its name does not say
    }
    kernel.id = e.external_id;
    kernels_.push_back(kernel);
  }

  std::uint32_t unknown_group() {
    Group group;
    group.name = "(not recorded)";
    return trace_.group(group);
  }

  Event of_unknown_size(Op op) {
    Event out;
    out.op = op;
    out.group = unknown_group();
    out.matched = false;
    out.async = true;
    out.unknown = {Field::group, Field::bytes, Field::dtype, Field::reduce, Field::root, Field::phase, Field::async};
    return out;
  }

  /// An operation from the arguments that PyTorch recorded.
  Event described(const KinetoEvent& e) {
    const std::string where = fmt::format("{}: traceEvents[{}]", place_, e.number);
    const Op op = *foreign_op(e.collective);
    const std::int64_t size = std::clamp<std::int64_t>(e.group_size, 0, 1 << 20);
    const auto dtype = foreign_dtype(e.dtype);
    if (!dtype) refuse_import(where, fmt::format("dtype \"{}\" is not known", e.dtype));
    const std::int64_t in = std::max<std::int64_t>(0, e.in), given = std::max<std::int64_t>(0, e.out);
    Event out;
    out.op = told_by_sides(op, in, given);
    out.dtype = *dtype;
    checked_bytes(in, *dtype, where);
    checked_bytes(given, *dtype, where);
    // Some versions sum lists of tensors on one side only; where both sides should be equal, the larger one
    // counts.
    out.bytes = checked_bytes(
        std::min(full_count(out.op, in, given, std::max<std::int64_t>(1, size)), std::int64_t{1} << 52), *dtype, where);
    Group group;
    group.name = e.group_name;
    if (!e.group_description.empty() && e.group_description != "undefined")
      group.name += fmt::format(" ({})", e.group_description);
    if (!e.group_ranks.empty()) group.ranks = rank_list(e.group_ranks, size);
    group.size = static_cast<int>(size);
    if (group.ranks.size() != static_cast<std::size_t>(size)) group.ranks.clear();
    out.group = trace_.group(group);
    out.matched = is_collective(op) && e.sequence >= 0;
    out.sequence = static_cast<std::uint64_t>(std::clamp<std::int64_t>(e.sequence, 0, std::int64_t{1} << 39));
    if (op == Op::send) out.peer = e.destination;
    if (op == Op::recv) out.peer = e.source;
    out.unknown = {Field::reduce, Field::phase};
    out.async = e.async != 0;
    if (e.async < 0) out.unknown.add(Field::async);
    if (out.peer < 0) out.unknown.add(Field::root);
    if (e.in < 0 && e.out < 0 && op != Op::barrier) out.unknown.add(Field::bytes);
    if (group.ranks.empty()) out.unknown.add(Field::group);
    return out;
  }

  /// The issues by thread and time.
  class Timeline {
   public:
    explicit Timeline(const std::vector<Issue>& issues) : issues_(issues) {
      for (std::size_t i = 0; i < issues.size(); ++i) by_thread_[issues[i].thread].push_back(i);
      for (auto& [thread, list] : by_thread_)
        std::stable_sort(list.begin(), list.end(),
                         [&](std::size_t a, std::size_t b) { return issues[a].begin < issues[b].begin; });
    }
    /// The last issue whose interval contains this one, if any.
    std::optional<std::size_t> around(std::int64_t thread, double begin, double end) const {
      const auto list = by_thread_.find(thread);
      if (list == by_thread_.end()) return std::nullopt;
      const auto after = std::upper_bound(list->second.begin(), list->second.end(), begin,
                                          [&](double time, std::size_t i) { return time < issues_[i].begin; });
      if (after == list->second.begin()) return std::nullopt;
      const std::size_t issue = *std::prev(after);
      return end <= issues_[issue].end + 1e3 ? std::optional(issue) : std::nullopt;
    }

   private:
    const std::vector<Issue>& issues_;
    std::map<std::int64_t, std::vector<std::size_t>> by_thread_;
  };

  /// An annotation inside a record_param_comms is the same operation, and the kernel may carry the
  /// annotation's id. Other annotations are separate operations.
  void join_annotations() {
    const Timeline timeline(issues_);
    std::vector<Issue> alone;
    for (const Issue& annotation : annotations_) {
      const auto issue = timeline.around(annotation.thread, annotation.begin, annotation.end);
      if (!issue) alone.push_back(annotation);
      else if (annotation.id >= 0) issue_of_id_.emplace(annotation.id, *issue);
    }
    issues_.insert(issues_.end(), alone.begin(), alone.end());
  }

  /// Kernels carry the id of the event that issued them or, in older profiles, of the call that launched
  /// them.
  void join_kernels() {
    for (std::size_t i = 0; i < issues_.size(); ++i)
      if (issues_[i].id >= 0) issue_of_id_.emplace(issues_[i].id, i);
    std::unordered_map<std::int64_t, const Launch*> launch_of_id;
    for (const NcclKernel& kernel : kernels_)
      if (kernel.id >= 0) launch_of_id.emplace(kernel.id, nullptr);
    for (const Launch& launch : launches_)
      if (const auto wanted = launch_of_id.find(launch.id); wanted != launch_of_id.end()) wanted->second = &launch;
    const Timeline timeline(issues_);
    std::vector<const NcclKernel*> alone;
    for (const NcclKernel& kernel : kernels_) {
      std::optional<std::size_t> issue;
      if (const auto known = issue_of_id_.find(kernel.id); kernel.id >= 0 && known != issue_of_id_.end())
        issue = known->second;
      const auto launch = launch_of_id.find(kernel.id);
      if (!issue && launch != launch_of_id.end() && launch->second)
        issue = timeline.around(launch->second->thread, launch->second->time, launch->second->time);
      if (!issue) {
        alone.push_back(&kernel);
        continue;
      }
      Event& event = issues_[*issue].event;
      event.on_device = true;
      event.started = event.started < 0 ? kernel.begin : std::min(event.started, kernel.begin);
      event.completed = std::max(event.completed, kernel.end);
    }
    for (Issue& issue : issues_) {
      issue.event.issued = issue.begin;
      if (issue.event.on_device) continue;
      issue.event.started = issue.begin;
      issue.event.completed = issue.end;
      issue.event.call_only = true;
      ++calls_only_;
    }
    for (const NcclKernel* one : alone) {
      const NcclKernel& kernel = *one;
      if (!kernel.described && !kernel.named) {
        ++nameless_;
        continue;
      }
      Event event = kernel.event;
      event.issued = event.started = kernel.begin;
      event.completed = kernel.end;
      event.on_device = true;
      issues_.push_back({event, 0, -1, kernel.begin, kernel.end});
      ++without_issue_;
    }
  }

  void finish(const KinetoInfo& info) {
    std::stable_sort(issues_.begin(), issues_.end(),
                     [](const Issue& a, const Issue& b) { return a.event.issued < b.event.issued; });
    auto list = std::make_shared<EventList>();
    list->events.reserve(issues_.size());
    const double first = issues_.front().event.issued;
    std::int64_t unsized = 0;
    for (Issue& issue : issues_) {
      for (double* time : {&issue.event.issued, &issue.event.started, &issue.event.completed})
        *time = std::max(0.0, *time - first);
      unsized += issue.event.unknown.has(Field::bytes);
      list->events.push_back(issue.event);
    }
    RankTrace rank;
    rank.rank = static_cast<int>(std::clamp<std::int64_t>(
        info.rank >= 0 ? info.rank : static_cast<std::int64_t>(trace_.ranks.size()), 0, 1 << 20));
    trace_.world = std::max(trace_.world, static_cast<int>(std::clamp<std::int64_t>(info.world, 0, 1 << 20)));
    if (info.rank < 0) rank.remarks.push_back("the profile does not say of which rank it is");
    if (unsized > 0)
      rank.remarks.push_back(
          fmt::format("{} of {} operations have no arguments: their sizes, types and groups are unknown "
                      "(profile with PyTorch 2.2 or later)",
                      unsized, issues_.size()));
    if (without_issue_ > 0)
      rank.remarks.push_back(fmt::format("{} kernels ran whose issue was not profiled", without_issue_));
    if (calls_only_ > 0)
      rank.remarks.push_back(
          fmt::format("{} of {} operations have no kernel in the profile: their times are those of the host's call",
                      calls_only_, issues_.size()));
    if (nameless_ > 0)
      rank.remarks.push_back(fmt::format(
          "{} nccl kernels are left out: neither their name (SendRecv) nor an annotation tells the operation",
          nameless_));
    add_marks(first, list->events, rank);
    rank.file = place_;
    rank.start.real_ns = static_cast<std::int64_t>(std::min(first, 9e18));
    rank.issued = static_cast<std::int64_t>(list->events.size());
    rank.events = std::move(list);
    trace_.ranks.push_back(std::move(rank));
    trace_.waits_known = false;
    trace_.format = "chrome trace of torch.profiler";
  }

  /// The profiler's own steps, as indexes of the list.
  void add_marks(double first, const std::vector<Event>& events, RankTrace& rank) {
    std::sort(marks_.begin(), marks_.end());
    const auto place = [&](double time) {
      return static_cast<std::size_t>(std::lower_bound(events.begin(), events.end(), time - first,
                                                       [](const Event& e, double t) { return e.issued < t; }) -
                                      events.begin());
    };
    for (const auto& [begin, end] : marks_) {
      const std::pair<std::size_t, std::size_t> step{place(begin), place(end)};
      if (step.first < step.second && (rank.marked_steps.empty() || rank.marked_steps.back().second <= step.first))
        rank.marked_steps.push_back(step);
    }
  }

  const std::string& place_;
  Trace& trace_;
  std::size_t count_ = 0;
  std::vector<Issue> issues_, annotations_;
  std::vector<NcclKernel> kernels_;
  std::vector<Launch> launches_;
  std::unordered_map<std::int64_t, std::size_t> issue_of_id_;
  std::vector<std::pair<double, double>> marks_;
  std::int64_t without_issue_ = 0, nameless_ = 0, calls_only_ = 0;
};

}  // namespace

void import_kineto(ByteStream& in, Trace& trace) { KinetoImporter(in.name(), trace).read(in); }

}  // namespace medley::trace
