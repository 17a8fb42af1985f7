#include "tune/mix.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "tune/candidates.hpp"
#include "tune/turns.hpp"

namespace medley::tune {
namespace {

constexpr std::size_t kib = 1024;
using Floats = std::vector<float>;

Floats floats(std::size_t bytes, int ranks) {
  const auto n = static_cast<std::size_t>(ranks);
  return Floats((bytes / sizeof(float) + n - 1) / n * n, 1.0f);
}

/// The buffers of all mixes; small enough that a step takes milliseconds on two cores.
class Mix {
 public:
  explicit Mix(Comm comm)
      : comm_(std::move(comm)), tokens_(floats(1024 * kib, comm_.size())), routed_(tokens_), back_(tokens_) {
    for (int i = 0; i < 4; ++i) buckets_.push_back(floats(512 * kib, comm_.size()));
    const auto n = static_cast<std::int64_t>(comm_.size());
    const auto whole = static_cast<std::int64_t>(tokens_.size());
    for (std::int64_t r = 0; r < n; ++r) sent_.push_back(whole * (r + 1) * 2 / (n * (n + 1)));   // popular tables
    received_.assign(static_cast<std::size_t>(n), sent_[static_cast<std::size_t>(comm_.rank())]);
    looked_up_.resize(static_cast<std::size_t>(n * received_[0]));
  }

  void run(std::string_view mix, std::string_view backend) {
    const Options later{.backend = backend, .async = true}, now{.backend = backend};
    if (mix == "moe") return moe(later, now);
    if (mix == "dlrm") return dlrm(later, now);
    dense(later);
  }

 private:
  std::vector<Work> sum_buckets(std::size_t count, const Options& later) {
    std::vector<Work> pending;
    for (std::size_t i = 0; i < count; ++i) pending.push_back(comm_.all_reduce(buckets_[i], max, later));
    return pending;
  }
  static void finish(std::vector<Work>& pending) {
    for (Work& work : pending) work.wait();
  }
  void moe(const Options& later, const Options& now) {
    auto gradients = sum_buckets(2, later);
    comm_.all_to_all(tokens_, routed_, now);
    comm_.all_to_all(routed_, back_, now);
    finish(gradients);
  }
  void dlrm(const Options& later, const Options& now) {
    auto gradients = sum_buckets(4, later);
    const auto given = std::accumulate(sent_.begin(), sent_.end(), std::int64_t{0});
    comm_.all_to_allv(std::span<const float>(tokens_.data(), static_cast<std::size_t>(given)), Parts{sent_}, looked_up_,
                      Parts{received_}, now);
    finish(gradients);
  }
  void dense(const Options& later) {
    auto pending = sum_buckets(4, later);
    const int n = comm_.size(), rank = comm_.rank();
    if (n > 1) {
      pending.push_back(comm_.recv(back_, (rank + n - 1) % n, later));
      pending.push_back(comm_.send(tokens_, (rank + 1) % n, later));
    }
    finish(pending);
  }

  Comm comm_;
  Floats tokens_, routed_, back_, looked_up_;
  std::vector<Floats> buckets_;
  std::vector<std::int64_t> sent_, received_;
};

}  // namespace

std::vector<MixRow> bench_mixes(Context& context, JobClock& clock, const std::vector<std::string>& mixes,
                                const std::vector<std::string>& wanted, double seconds) {
  Comm world = context.world();
  std::vector<std::string> backends;
  for (const Candidate& usable : candidates(world, Op::all_reduce, DType::f32, {wanted})) backends.push_back(usable.backend);
  Mix work(world);
  std::vector<MixRow> rows;
  for (const std::string& mix : mixes) {
    if (std::find(std::begin(mix_names), std::end(mix_names), mix) == std::end(mix_names)) {
      throw Error(ErrorKind::invalid, fmt::format("\"{}\" is not a mix; there are moe, dlrm and dense", mix));
    }
    std::vector<std::vector<double>> samples(backends.size());
    const double end = clock.seconds() + seconds / static_cast<double>(mixes.size());
    double now = 0;
    for (int round = -2; round < 5 || now < end; ++round) {   // two rounds to warm up
      for (const std::size_t b : turns(backends.size(), static_cast<std::size_t>(round + 2))) {
        const Sample sample = clock.time([&] { work.run(mix, backends[b]); });
        if (round >= 0) samples[b].push_back(sample.us);
        now = clock.seconds_at(sample);
      }
    }
    for (std::size_t b = 0; b < backends.size(); ++b) {
      rows.push_back({mix, backends[b], summarize(samples[b]), samples[b].size()});
    }
  }
  return rows;
}

}  // namespace medley::tune
