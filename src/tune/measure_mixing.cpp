#include "tune/measure_mixing.hpp"

#include <algorithm>

#include "tune/cell_statistics.hpp"
#include "tune/workload.hpp"

namespace medley::tune {
namespace {

constexpr std::size_t mixed_bytes = 16 << 10;  // the fixed costs count, and large tensors would only add noise
constexpr int mixing_rounds = 16, operations_of_each = 4;

}  // namespace

double added_by_mixing_us(const std::vector<double>& alternating_us, const std::vector<double>& apart_us,
                          int alternations) {
  std::vector<double> added;
  for (std::size_t i = 0; i < std::min(alternating_us.size(), apart_us.size()); ++i)
    added.push_back((alternating_us[i] - apart_us[i]) / alternations);
  if (added.empty() || median_interval(added).low <= 0) return 0;
  return median(std::move(added));
}

std::vector<route::MixingCost> measure_mixing(const Comm& comm, const route::Shape& shape, const std::string& preferred,
                                              const std::vector<std::string>& libraries, JobClock& clock) {
  std::vector<route::MixingCost> costs;
  Workload workload(comm, Op::all_reduce, mixed_bytes, DType::f32);
  const Choice own{preferred, {}};
  const auto time_us = [&](const Choice& first, const Choice& second) {
    workload.run(first, 1);  // untimed: absorbs what was there before
    workload.run(second, 1);
    return clock
        .time([&] {
          for (int i = 0; i < operations_of_each; ++i) workload.run(first, 1), workload.run(second, 1);
        })
        .us;
  };
  for (const std::string& library : libraries) {
    if (library == preferred) continue;
    const Choice other{library, {}};
    std::vector<double> alternating, apart;
    for (int round = 0; round < mixing_rounds; ++round) {
      alternating.push_back(time_us(other, own));
      apart.push_back((time_us(other, other) + time_us(own, own)) / 2);
    }
    costs.push_back({Memory::host, shape, library, added_by_mixing_us(alternating, apart, operations_of_each)});
  }
  return costs;
}

}  // namespace medley::tune
