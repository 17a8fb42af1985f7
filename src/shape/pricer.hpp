// Prices operators and steps on one machine, with a cache: shapes repeat across layers, passes and the
// candidates of a search. One per thread; used by everything in the advisor that needs a time.
#pragma once

#include "cost/kernel_time.hpp"
#include "cost/machine.hpp"
#include "shape/operators.hpp"

namespace medley::shape {

/// Microseconds by kind of work, and the arithmetic done in them.
struct Cost {
  double gemm = 0, attention = 0, memory = 0, communication = 0;
  double flops = 0;  ///< useful flops, without recomputation
  double us() const noexcept { return gemm + attention + memory + communication; }
  Cost& operator+=(const Cost& other) noexcept;
  Cost operator*(double factor) const noexcept;
};

class Pricer {
 public:
  /// Uses the built-in machine with this GPU, or a host of eight with its links.
  explicit Pricer(const GpuModel& gpu);

  const GpuModel& gpu() const noexcept { return kernels_.gpu(); }
  const Machine& machine() const noexcept { return machine_; }
  KernelTime& kernels() noexcept { return kernels_; }
  /// All calls of one operator, including the gaps between them.
  double us(const Operator& op);
  Cost price(const Operators& operators);
  std::size_t distinct() const noexcept { return kernels_.distinct(); }  ///< different kernels priced so far

 private:
  Machine machine_;
  KernelTime kernels_;
};

}  // namespace medley::shape
