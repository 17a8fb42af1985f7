// Prices operators with a GPU model and remembers what it has priced: shapes repeat across layers, passes and
// the candidates of a search. One per thread; used by everything in the advisor that needs a time.
#pragma once

#include <unordered_map>

#include "shape/gpu_model.hpp"
#include "shape/operators.hpp"

namespace medley::shape {

/// Microseconds by kind of work, and the arithmetic done in them.
struct Cost {
  double gemm = 0, attention = 0, memory = 0, communication = 0;
  double flops = 0;  ///< useful: what recomputation repeats does not count
  double us() const noexcept { return gemm + attention + memory + communication; }
  Cost& operator+=(const Cost& other) noexcept;
  Cost operator*(double factor) const noexcept;
};

class Pricer {
 public:
  explicit Pricer(const GpuModel& gpu) : gpu_(gpu) {}

  const GpuModel& gpu() const noexcept { return gpu_; }
  /// All calls of one operator.
  double us(const Operator& op);
  Cost price(const Operators& operators);
  std::size_t distinct() const noexcept { return known_.size(); }  ///< different products priced so far

 private:
  struct Key {
    std::int64_t m, n, k, batch, kind;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const noexcept;
  };
  double gemm_us(const Gemm& gemm);
  double attention_us(const Attention& attention, bool backward, AttentionKernel kernel);

  GpuModel gpu_;
  std::unordered_map<Key, double, Hash> known_;
};

}  // namespace medley::shape
