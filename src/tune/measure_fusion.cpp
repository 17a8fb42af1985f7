#include "tune/measure_fusion.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "route/choose.hpp"

namespace medley::tune {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t fusion_sizes[] = {256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10};
// A quarter of the largest: the fixed cost of a message counts less in larger ones
constexpr std::int64_t message_bytes = 1 << 20;
constexpr std::int64_t most_tensors = 64;
constexpr int fusion_rounds = 9;

double us_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

double median_of(std::vector<double>& values) {
  std::nth_element(values.begin(), values.begin() + fusion_rounds / 2, values.end());
  return std::max(values[fusion_rounds / 2], 0.001);
}

/// The table's route for an all_reduce of this size; empty where it has none.
Choice route_of(const route::Table& table, const route::Shape& shape, std::int64_t bytes) {
  const route::Chosen chosen =
      route::choose(table, Op::all_reduce, Memory::host, route::DTypeClass::floating, shape, route::any_route);
  const route::SizeRange* const range = chosen.at(bytes);
  return range ? range->route : Choice{};
}

class FusionRace {
 public:
  FusionRace(Comm comm, const route::Shape& shape, const route::Table& table, const std::string& backend,
             std::int64_t bytes)
      : comm_(std::move(comm)),
        tensors_(static_cast<std::size_t>(std::clamp<std::int64_t>(message_bytes / bytes, 4, most_tensors)),
                 std::vector<float>(static_cast<std::size_t>(bytes / 4))),
        packed_(tensors_.size() * tensors_.front().size()),
        alone_(backend.empty() ? route_of(table, shape, bytes) : Choice{.backend = backend}),
        together_(backend.empty() ? route_of(table, shape, static_cast<std::int64_t>(packed_.size() * sizeof(float)))
                                  : alone_) {}

  route::FusionTiming run() {
    std::vector<double> separate, fused;
    for (int round = -1; round < fusion_rounds; ++round) {  // the first warms up
      const double one_by_one = time([this] { separately(); }), packed = time([this] { packed_together(); });
      if (round < 0) continue;
      separate.push_back(one_by_one);
      fused.push_back(packed);
    }
    return {.bytes = static_cast<std::int64_t>(tensors_.front().size() * sizeof(float)),
            .separate_us = median_of(separate),
            .fused_us = median_of(fused)};
  }

 private:
  template <class Body>
  double time(Body&& body) {
    comm_.barrier();
    const auto begin = Clock::now();
    body();
    return us_since(begin);
  }
  static Options options_of(const Choice& route, bool async) {
    return {.backend = route.backend,
            .async = async,
            .algorithm = route.algorithm == "native" ? std::string_view{} : route.algorithm};
  }
  void separately() {
    std::vector<Work> works;
    for (auto& tensor : tensors_) works.push_back(comm_.all_reduce(tensor, sum, options_of(alone_, true)));
    for (Work& work : works) work.wait();
  }
  /// What the runtime does with a fused message over a backend that takes no lists.
  void packed_together() {
    float* at = packed_.data();
    for (const auto& tensor : tensors_) at = std::copy(tensor.begin(), tensor.end(), at);
    comm_.all_reduce(packed_, sum, options_of(together_, false));
    const float* from = packed_.data();
    for (auto& tensor : tensors_) {
      std::copy_n(from, tensor.size(), tensor.begin());
      from += tensor.size();
    }
  }

  Comm comm_;
  std::vector<std::vector<float>> tensors_;
  std::vector<float> packed_;
  Choice alone_, together_;
};

}  // namespace

route::FusionRow measure_fusion(Comm comm, const route::Shape& shape, const route::Table& table,
                                const std::string& backend, double seconds) {
  route::FusionRow row{.memory = Memory::host, .shape = shape, .backend = backend};
  const auto begin = Clock::now();
  for (const std::int64_t bytes : fusion_sizes) {
    const route::FusionTiming own = FusionRace(comm, shape, table, backend, bytes).run();
    const bool over = own.fused_us > own.separate_us || us_since(begin) > seconds * 1e6;
    std::vector<double> shared = {own.separate_us, own.fused_us, over ? 1.0 : 0.0};
    comm.broadcast(shared, 0);
    row.sizes.push_back({.bytes = bytes, .separate_us = shared[0], .fused_us = shared[1]});
    if (shared[2] > 0) break;
  }
  return row;
}

}  // namespace medley::tune
