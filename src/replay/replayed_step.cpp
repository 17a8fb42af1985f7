#include "replay/replayed_step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <medley/error.hpp>
#include <tuple>

#include "base/host_blocks.hpp"
#include "base/v_collectives.hpp"
#include "replay/compute_time.hpp"
#include "replay/places.hpp"
#include "tune/job_clock.hpp"
#include "tune/mix_step.hpp"

namespace medley::replay {
namespace {

/// The operation that is issued: parts that differ make it a v-collective.
Op issued_as(const Action& action, std::int64_t bytes, std::size_t ranks) {
  const auto elements = bytes / static_cast<std::int64_t>(size_of(action.dtype));
  if (elements % static_cast<std::int64_t>(ranks) == 0) return core::equal_counts_form(action.op);
  switch (action.op) {
    case Op::all_gather: return Op::all_gatherv;
    case Op::reduce_scatter: return Op::reduce_scatterv;
    case Op::all_to_all: return Op::all_to_allv;
    case Op::gather: return Op::gatherv;
    case Op::scatter: return Op::scatterv;
    default: return action.op;
  }
}

tune::StepOperation operation_of(const Action& action, const RankSchedule& rank, const ReplayOptions& options,
                                 const std::vector<int>& hosts) {
  const std::vector<int>& members = rank.groups.at(action.group);
  const std::int64_t bytes = scaled_bytes(action.bytes, action.dtype, options.scale);
  const Op op = route::routed_as(issued_as(action, bytes, members.size()));
  const std::vector<int> places = hosts_of_ranks(members, hosts);
  return {.op = op,
          .dtype = action.dtype,
          .bytes = bytes,
          .shape = route::shape_of(places),
          .in_blocks = core::in_equal_blocks(places)};
}

bool sends(const WorldSchedule& schedule) {
  return std::any_of(schedule.ranks.begin(), schedule.ranks.end(), [](const RankSchedule& rank) {
    return std::any_of(rank.actions.begin(), rank.actions.end(), [](const Action& a) { return a.kind == Kind::comm; });
  });
}

/// One rank sends nothing.
[[noreturn]] void refuse_alone(const std::string& step, int enough) {
  throw Error(ErrorKind::invalid, fmt::format("tuning for {} needs several ranks; add -n {}", step, enough));
}

class ReplayedStep final : public tune::Step {
 public:
  ReplayedStep(Context& context, const WorldSchedule& schedule, const ReplayOptions& options)
      : options_(options),
        replayer_(context, schedule, options),
        mine_(schedule.of(context.rank(), context.size())),
        computing_us_(busiest_us(schedule, options)) {
    Comm world = context.world();
    hosts_ = tune::hosts_of(world);
    operations_ = operations_of(schedule, options, hosts_);
  }

  const std::vector<tune::StepOperation>& operations() const override { return operations_; }
  double computing_us() const override { return computing_us_; }
  void run(const tune::StepRoutes& routes) override {
    replayer_.run([&](const Action& action) -> Via {
      if (mine_.groups.at(action.group).size() < 2) return {};
      const tune::StepOperation operation = operation_of(action, mine_, options_, hosts_);
      const Choice& route = routes.of(operation.op, operation.dtype, operation.bytes, operation.shape);
      return {route.backend, route.algorithm};
    });
  }

 private:
  ReplayOptions options_;
  Replayer replayer_;
  RankSchedule mine_;
  std::vector<int> hosts_;
  std::vector<tune::StepOperation> operations_;
  double computing_us_ = 0;
};

}  // namespace

double busiest_us(const WorldSchedule& schedule, const ReplayOptions& options) {
  double most = 0;
  for (const RankSchedule& rank : schedule.ranks) {
    double seconds = 0;
    for (const Action& action : rank.actions) {
      if (action.kind == Kind::compute) seconds += compute_seconds(action, options);
    }
    most = std::max(most, 1e6 * seconds);
  }
  return most;
}

std::vector<tune::StepOperation> operations_of(const WorldSchedule& schedule, const ReplayOptions& options,
                                               const std::vector<int>& hosts) {
  const int size = static_cast<int>(hosts.size());
  struct Issued {
    std::int64_t count = 0;
    bool in_blocks = true;
  };
  std::map<std::tuple<route::Shape, Op, DType, std::int64_t>, Issued> kinds;
  for (int rank = 0; rank < size; ++rank) {
    const RankSchedule one = schedule.of(rank, size);
    for (const Action& action : one.actions) {
      if (action.kind != Kind::comm || one.groups.at(action.group).size() < 2 || action.op == Op::recv) continue;
      const tune::StepOperation operation = operation_of(action, one, options, hosts);
      Issued& issued = kinds[{operation.shape, operation.op, operation.dtype, operation.bytes}];
      ++issued.count;
      issued.in_blocks = issued.in_blocks && operation.in_blocks;
    }
  }
  std::vector<tune::StepOperation> operations;
  for (const auto& [key, issued] : kinds) {
    const auto& [shape, op, dtype, bytes] = key;
    operations.push_back({.op = op,
                          .dtype = dtype,
                          .bytes = bytes,
                          .shape = shape,
                          .count = issued.count,
                          .in_blocks = issued.in_blocks});
  }
  return operations;
}

std::function<std::unique_ptr<tune::Step>(Context&)> schedule_as_step(WorldSchedule schedule,
                                                                      const ReplayOptions& options) {
  return [schedule = std::move(schedule), options](Context& context) -> std::unique_ptr<tune::Step> {
    return std::make_unique<ReplayedStep>(context, schedule, options);
  };
}

void tune_for(const std::string& step, const ReplayOptions& options, int ranks, tune::TuneRequest& request) {
  request.step_name = step;
  if (tune::is_mix(step)) {
    if (ranks < 2) refuse_alone(step, 2);
    request.step = tune::mix_as_step(step, request.options.memory);
    return;
  }
  if (request.options.memory == Memory::cuda)
    throw Error(ErrorKind::invalid,
                "--for SCHEDULE --memory cuda: schedules are replayed on host memory; a built-in mix runs on both");
  WorldSchedule schedule = read_schedule(step);
  if (!sends(schedule)) throw Error(ErrorKind::invalid, fmt::format("{}: its ranks send nothing", step));
  if (ranks < 2) refuse_alone(step, std::max(2, schedule.world));
  static_cast<void>(schedule.of(0, ranks));
  request.progress_thread = overlaps(schedule) && options.tflops > 0;
  request.step_name = std::filesystem::path(step).filename();
  request.step = schedule_as_step(std::move(schedule), options);
}

bool overlaps(const WorldSchedule& schedule) {
  return std::any_of(schedule.ranks.begin(), schedule.ranks.end(), [](const RankSchedule& rank) {
    return std::any_of(rank.actions.begin(), rank.actions.end(), [](const Action& a) { return a.token != 0; });
  });
}

}  // namespace medley::replay
