#include "tune/tuner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "route/choose.hpp"
#include "route/pair_name.hpp"
#include "route/preferred_library.hpp"
#include "tune/candidates.hpp"
#include "tune/job_clock.hpp"
#include "tune/measure_fusion.hpp"
#include "tune/measure_mixing.hpp"
#include "tune/nccl_variant.hpp"
#include "tune/plan_cells.hpp"
#include "tune/race.hpp"
#include "tune/workload.hpp"

namespace medley::tune {
namespace {

constexpr double share_of_first_look = 0.7;  // of the time; the rest is for close routes
constexpr double share_of_fusion = 0.05;     // of the time
constexpr double least_seconds = 0.004;      // for one more measurement of a cell

class Tuner {
 public:
  Tuner(Context& context, const TuneOptions& options, route::Table& table, const TuneHooks& hooks)
      : options_(options),
        table_(table),
        hooks_(hooks),
        world_(context.world()),
        clock_(context),
        groups_(shaped_comms_of(world_, clock_.hosts())) {
    if (!options_.shapes.empty()) keep_shapes();
    name_machine(context, table_);
    share_table(world_, table_);
  }

  void run() {
    std::vector<route::Key> cells = first_look(options_, shapes(), table_);
    of_ = cells.size();
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const double left = options_.seconds * share_of_first_look - used();
      if (used() >= options_.seconds || stopped(cells[i])) return;
      // Cells that finish early leave their time to the others.
      measure(cells[i], left / static_cast<double>(cells.size() - i));
    }
    measure_mixings();
    measure_fusions();
    std::map<route::Key, int> rounds;  // each cell gets more time in every round, and the number of rounds is bounded
    for (;;) {
      auto next = next_unclear_cell(table_, shapes(), options_, rounds);
      if (!next) next = next_to_confirm(table_, cells, rounds);
      if (!next) return;
      if (used() >= options_.seconds || stopped(*next)) return;
      const int round = ++rounds[*next];
      measure(*next, std::min(0.2 * round, std::max(options_.seconds - used(), least_seconds)));
    }
  }

 private:
  double used() { return clock_.seconds(); }

  /// Only the groups whose rows comms of the shapes asked for will use; all of them if the job has none of those.
  void keep_shapes() {
    const std::set<route::Shape> used = used_shapes(shapes(), options_.shapes);
    if (!used.empty()) std::erase_if(groups_, [&](const ShapedComm& group) { return !used.contains(group.shape); });
  }

  std::vector<route::Shape> shapes() const {
    std::vector<route::Shape> all;
    for (const ShapedComm& group : groups_) all.push_back(group.shape);
    return all;
  }

  bool stopped(const route::Key& next) {
    std::vector<std::uint8_t> stop{0};
    const double now = used();
    if (world_.rank() == 0) {
      stop[0] = hooks_.stop() ? 1 : 0;
      hooks_.progress({now, done_, of_, fmt::format("{} {}", name(next.op), next.bytes)});
    }
    world_.broadcast(stop, 0);
    return stop[0] != 0;
  }

  const std::vector<Candidate>& routes_of(const ShapedComm& group, Op op, DType dtype) {
    auto& list = routes_[{group.shape, op, dtype}];
    if (list.empty()) {
      Comm comm = group.comm;
      list = candidates(comm, op, dtype, options_.memory,
                        {.backends = options_.backends, .every_algorithm = true, .codecs = options_.codecs});
    }
    return list;
  }

  void measure(const route::Key& key, double seconds) {
    ++done_;
    const ShapedComm& group =
        *std::find_if(groups_.begin(), groups_.end(), [&](const auto& g) { return g.shape == key.shape; });
    const DType dtype = dtype_for(key, options_);
    const double end = used() + seconds;
    Workload workload(group.comm, key.op, static_cast<std::size_t>(key.bytes), dtype, options_.memory);
    Race race;
    const route::Cell* before = table_.find(key);
    for (const Candidate& candidate : routes_of(group, key.op, dtype)) {
      const Choice shown{candidate.backend, candidate.algorithm};
      if (route::is_split(candidate.backend) && key.bytes < route::least_split_bytes) continue;
      // Far behind here or at the size before: no need to measure it again.
      const route::Timing* known = before ? before->find(shown) : nullptr;
      if (known ? known->median_us > 2 * before->routes.front().median_us : far_behind(table_, key, shown)) continue;
      race.add(shown);
      race.candidates.back().route.algorithm = candidate.route.algorithm;
    }
    if (race.candidates.empty()) return;
    sample(workload, key.op, race, end);
    for (auto& candidate : race.candidates) {
      if (candidate.route.algorithm.empty()) candidate.route.algorithm = "native";  // messages
    }
    keep(key, race);
  }

  /// Those that have a route for an all_reduce of the shape in the table.
  std::set<std::string> backends_of(const ShapedComm& group) const {
    std::set<std::string> names;
    for (const route::Cell& cell : table_.cells()) {
      if (cell.key.op != Op::all_reduce || cell.key.memory != Memory::host || cell.key.shape != group.shape) continue;
      for (const route::Timing& timing : cell.routes) names.insert(timing.route.backend);
    }
    return names;
  }

  /// Where all_reduce was measured: when fusion pays over the table's routes, and over each backend alone. Takes a
  /// small share of the time.
  void measure_fusions() {
    const bool wanted = options_.memory == Memory::host && options_.exactly.empty() &&
                        std::find(options_.ops.begin(), options_.ops.end(), Op::all_reduce) != options_.ops.end();
    for (const ShapedComm& group : groups_) {
      if (!wanted || !group.comm || group.comm.size() == 1) continue;
      std::vector<std::string> each{""};
      for (const std::string& backend : backends_of(group)) each.push_back(backend);
      const double seconds = share_of_fusion * options_.seconds / static_cast<double>(groups_.size() * each.size());
      for (const std::string& backend : each) {
        if (!table_.fusion_limit(Memory::host, group.shape, backend))
          table_.put(measure_fusion(group.comm, group.shape, table_, backend, seconds));
      }
    }
    if (wanted) share_table(world_, table_);  // rank 0 may not be in every group
  }

  /// Where several operations were measured, so that a job may use several libraries; those of a tuned step are
  /// compared as a whole.
  void measure_mixings() {
    if (options_.memory != Memory::host || !options_.exactly.empty()) return;
    for (const ShapedComm& group : groups_) {
      if (group.comm.size() == 1) continue;
      const bool known = std::any_of(table_.mixing().begin(), table_.mixing().end(),
                                     [&](const route::MixingCost& cost) { return cost.shape == group.shape; });
      const std::string preferred =
          route::PreferredLibrary(table_, Memory::host, group.shape, route::any_route).library();
      std::vector<std::string> libraries;
      for (const Candidate& candidate : routes_of(group, Op::all_reduce, DType::f32)) {
        if (!route::is_made_of_two(candidate.backend) && (libraries.empty() || libraries.back() != candidate.backend))
          libraries.push_back(candidate.backend);
      }
      if (known || std::find(libraries.begin(), libraries.end(), preferred) == libraries.end()) continue;
      for (route::MixingCost& cost : measure_mixing(group.comm, group.shape, preferred, libraries, clock_))
        table_.put(std::move(cost));
    }
    share_table(world_, table_);  // the text has fewer digits
  }

  void sample(Workload& workload, Op op, Race& race, double end) {
    // Batches resolve operations of a fraction of a microsecond. But where a rank can run ahead within a batch (one
    // that only sends; any rank, where cores are oversubscribed), a batch measures how far it ran ahead, not how long
    // an operation takes.
    const bool in_step = is_collective(op) && !rooted(op) && !clock_.oversubscribed();
    race.warm_up(clock_, workload, in_step ? 5 : 0, 100);
    race.drop_far_behind(clock_, workload);
    bool over = false;
    for (std::size_t round = 0; !over; ++round) {
      const double now = clock_.seconds_at(race.run_round(clock_, workload, round));
      // A choice from few samples is random: where time is short, sizes are left out instead, and auto takes the
      // nearest.
      over = race.settle() || (now >= end && round + 1 >= Race::least_samples);
    }
  }

  void keep(const route::Key& key, const Race& race) {
    route::Cell cell = race.cell(key);
    if (nccl_variant_) {
      for (route::Timing& timing : cell.routes) {
        if (timing.route.backend == "nccl" && timing.route.algorithm == "native")
          timing.route.algorithm = route::name(*nccl_variant_);
      }
    }
    if (const route::Cell* before = table_.find(key)) cell = merged(std::move(cell), *before);
    table_.put(std::move(cell));
    if (world_.rank() == 0) hooks_.changed(table_);
  }

  const TuneOptions& options_;
  route::Table& table_;
  const TuneHooks& hooks_;
  Comm world_;
  JobClock clock_;
  std::vector<ShapedComm> groups_;
  std::map<std::tuple<route::Shape, Op, DType>, std::vector<Candidate>> routes_;
  /// What nccl/native is in this process
  std::optional<route::NcclAlgorithm> nccl_variant_ = nccl_variant_of_environment();
  std::size_t done_ = 0, of_ = 0;
};

}  // namespace

void name_machine(const Context& context, route::Table& table) {
  auto libraries = std::move(table.machine.libraries);  // those that only cells of an earlier call were measured with
  table.machine = route::this_machine();
  table.machine.libraries = std::move(libraries);
  for (const BackendInfo& backend : context.backends()) {
    if (backend.available) table.machine.libraries[backend.name] = backend.version;
  }
}

void share_table(Comm& world, route::Table& table) {
  std::vector<std::uint8_t> text;
  if (world.rank() == 0) {
    const std::string own = table.text();
    text.assign(own.begin(), own.end());
  }
  std::vector<std::int64_t> length{static_cast<std::int64_t>(text.size())};
  world.broadcast(length, 0);
  text.resize(static_cast<std::size_t>(length[0]));
  world.broadcast(text, 0);
  // On rank 0, too: the text has fewer digits, and what to measure next must follow from the same times on every rank.
  table = route::Table::parse(std::string(text.begin(), text.end()), "of rank 0");
}

void tune(Context& context, const TuneOptions& options, route::Table& table, const TuneHooks& hooks) {
  Tuner(context, options, table, hooks).run();
}

}  // namespace medley::tune
