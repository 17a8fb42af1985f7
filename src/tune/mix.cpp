#include "tune/mix.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "route/pair_name.hpp"
#include "tune/block.hpp"
#include "tune/candidates.hpp"
#include "tune/race.hpp"

namespace medley::tune {
namespace {

constexpr std::size_t kib = 1024;

/// The buffers of all mixes; small enough that a step takes milliseconds on two cores.
class Mix {
 public:
  Mix(Comm comm, Memory memory)
      : comm_(std::move(comm)), memory_(memory), tokens_(floats(1024 * kib)), routed_(floats(1024 * kib)), back_(floats(1024 * kib)) {
    for (int i = 0; i < 4; ++i) buckets_.push_back(floats(512 * kib));
    const auto n = static_cast<std::int64_t>(comm_.size());
    const auto whole = static_cast<std::int64_t>(tokens_.count());
    for (std::int64_t r = 0; r < n; ++r) sent_.push_back(whole * (r + 1) * 2 / (n * (n + 1)));   // skewed, as popular embedding tables are
    received_.assign(static_cast<std::size_t>(n), sent_[static_cast<std::size_t>(comm_.rank())]);
    looked_up_ = Block(static_cast<std::size_t>(n * received_[0]), DType::f32, memory);
  }

  /// Returns when the host has seen every operation complete.
  void run(std::string_view mix, std::string_view backend) {
    const Options later{.backend = backend, .async = true}, now{.backend = backend};
    std::vector<Work> issued = mix == "moe" ? moe(later, now) : mix == "dlrm" ? dlrm(later, now) : dense(later);
    for (Work& work : issued) work.wait_host();
  }

  /// Runs it once on values that differ between ranks; throws when a result is wrong.
  void check(std::string_view mix, std::string_view backend) {
    for (Block* block : {&tokens_, &routed_, &back_, &looked_up_}) block->fill(block == &tokens_ ? comm_.rank() + 1 : 0);
    for (Block& bucket : buckets_) bucket.fill(comm_.rank() + 1);
    if (memory_ == Memory::cuda) core::wait_for_device();
    run(mix, backend);
    const int n = comm_.size(), rank = comm_.rank();
    const auto expect = [&](Block& block, double value) { expect_parts(mix, backend, block, {value}); };
    for (std::size_t i = 0; i < (mix == "moe" ? 2u : 4u); ++i) expect(buckets_[i], n);
    std::vector<double> of_rank(static_cast<std::size_t>(n));
    std::iota(of_rank.begin(), of_rank.end(), 1.0);
    if (mix == "moe") expect_parts(mix, backend, routed_, of_rank), expect(back_, rank + 1);
    if (mix == "dlrm") expect_parts(mix, backend, looked_up_, of_rank);
    if (mix == "dense" && n > 1) expect(back_, (rank + n - 1) % n + 1);
  }

 private:
  Block floats(std::size_t bytes) const {
    const auto n = static_cast<std::size_t>(comm_.size());
    Block block((bytes / sizeof(float) + n - 1) / n * n, DType::f32, memory_);
    block.fill(1);
    return block;
  }
  static void expect_parts(std::string_view mix, std::string_view backend, Block& block, const std::vector<double>& values) {
    block.look();
    const std::size_t part = block.count() / values.size();
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (const std::size_t at = block.first_other(i * part, part, values[i]); at != (i + 1) * part) {
        throw Error(ErrorKind::mismatch, fmt::format("the mix {} over {} gave a wrong value at element {}", mix, backend, at));
      }
    }
  }

  std::vector<Work> sum_buckets(std::size_t count, const Options& later) {
    std::vector<Work> issued;
    for (std::size_t i = 0; i < count; ++i) issued.push_back(comm_.all_reduce(buckets_[i].buffer(), max, later));
    return issued;
  }
  std::vector<Work> moe(const Options& later, const Options& now) {
    auto issued = sum_buckets(2, later);
    issued.push_back(comm_.all_to_all(tokens_.buffer(), routed_.buffer(), now));
    issued.push_back(comm_.all_to_all(routed_.buffer(), back_.buffer(), now));
    return issued;
  }
  std::vector<Work> dlrm(const Options& later, const Options& now) {
    auto issued = sum_buckets(4, later);
    const auto given = static_cast<std::size_t>(std::accumulate(sent_.begin(), sent_.end(), std::int64_t{0}));
    issued.push_back(comm_.all_to_allv(tokens_.buffer(given), Parts{sent_}, looked_up_.buffer(), Parts{received_}, now));
    return issued;
  }
  std::vector<Work> dense(const Options& later) {
    auto issued = sum_buckets(4, later);
    const int n = comm_.size(), rank = comm_.rank();
    if (n > 1) {
      issued.push_back(comm_.recv(back_.buffer(), (rank + n - 1) % n, later));
      issued.push_back(comm_.send(tokens_.buffer(), (rank + 1) % n, later));
    }
    return issued;
  }

  Comm comm_;
  Memory memory_;
  Block tokens_, routed_, back_, looked_up_;
  std::vector<Block> buckets_;
  std::vector<std::int64_t> sent_, received_;
};

/// One mix, with the interface that a race of backends needs.
class MixWorkload {
 public:
  MixWorkload(Mix& work, std::string_view mix) : work_(work), mix_(mix) {}
  void check(const Choice& route) { work_.check(mix_, route.backend); }
  void run(const Choice& route, int times = 1) {
    for (int i = 0; i < times; ++i) work_.run(mix_, route.backend);
  }
  Sample time(JobClock& clock, const Choice& route, int times = 1) {
    return clock.time([&] { run(route, times); });
  }

 private:
  Mix& work_;
  std::string_view mix_;
};

/// How much faster a row is than the best of its mix over one library, or over a backend made of two; 0 where
/// there is none.
double gain_over(const std::vector<MixRow>& rows, const MixRow& row, bool made_of_two) {
  double best = INFINITY;
  for (const MixRow& other : rows) {
    if (other.mix == row.mix && other.backend != "auto" && route::is_pair(other.backend) == made_of_two)
      best = std::min(best, other.time.median);
  }
  return std::isinf(best) ? 0 : best / row.time.median;
}

}  // namespace

void compare_mixes(std::vector<MixRow>& rows) {
  for (MixRow& row : rows) {
    row.speedup = gain_over(rows, row, false);
    row.speedup_over_two = gain_over(rows, row, true);
  }
}

std::vector<MixRow> bench_mixes(Context& context, JobClock& clock, const MixOptions& options) {
  Comm world = context.world();
  const std::vector<Candidate> routes = candidates(world, Op::all_reduce, DType::f32, options.memory, {options.backends});
  if (routes.empty()) {
    throw Error(ErrorKind::unavailable, fmt::format("none of the backends {} moves {} memory between these ranks",
                                                    fmt::join(options.backends, ", "), name(options.memory)));
  }
  Mix work(world, options.memory);
  std::vector<MixRow> rows;
  for (const std::string& mix : options.mixes) {
    MixWorkload workload(work, mix);
    Race race;
    for (const Candidate& usable : routes) race.add(usable.route);
    race.warm_up(clock, workload, 0, 1);
    const double end = clock.seconds() + options.seconds / static_cast<double>(options.mixes.size());
    double now = 0;
    for (std::size_t round = 0; round < 5 || now < end; ++round) now = clock.seconds_at(race.run_round(clock, workload, round));
    for (std::size_t r = 0; r < routes.size(); ++r) {
      const std::vector<double>& samples = race.candidates[r].samples_us;
      rows.push_back({mix, routes[r].backend, options.memory, summarize(samples), samples.size()});
    }
  }
  compare_mixes(rows);
  return rows;
}

}  // namespace medley::tune
