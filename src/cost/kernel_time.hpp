// How long the kernels of a schedule keep a GPU busy, from the GPU's model, with a cache: shapes repeat
// across layers, passes and the candidates of a search. The only place where entries become kernels; used by
// plan's times, by the advisor and by replay's prediction. One per thread.
#pragma once

#include <unordered_map>

#include "cost/constants.hpp"
#include "cost/gpu_model.hpp"
#include "cost/words.hpp"

namespace medley::cost {

class KernelTime {
 public:
  explicit KernelTime(GpuModel model, double flash1_share = CostConstants{}.flash1_share)
      : model_(std::move(model)), flash1_share_(flash1_share) {}

  const GpuModel& gpu() const noexcept { return model_; }
  /// GPU time of a gemm, attention or memory entry; 0 for others.
  double us(const Entry& entry);
  double gemm_us(const Gemm& gemm);
  /// A batch of products with different weights, such as a rank's experts.
  double grouped_us(const Gemm& gemm);
  /// What a product that adds to its output takes longer than one that writes it.
  double accumulation_us(const plan::Gemm& gemm) const;
  double attention_us(const plan::Attention& attention, bool backward);
  double windowed_us(const plan::Attention& attention, bool backward);
  double stream_us(StreamOp op, double bytes) const { return model_.stream_us(op, bytes); }
  std::size_t distinct() const noexcept { return known_.size(); }  ///< different kernels requested so far

 private:
  struct Key {
    std::int64_t m, n, k, batch, kind;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const noexcept;
  };
  GpuModel model_;
  double flash1_share_;
  std::unordered_map<Key, double, Hash> known_;
};

/// The product as passed to cuBLAS: row-major, so m and n are exchanged.
Gemm cublas_gemm(const plan::Gemm& gemm, DType dtype);
/// Number of kernels that the host issues for an entry: one, except for chains of element-wise kernels and
/// products in parts.
inline int kernels_of(const Entry& entry) {
  switch (entry.kind) {
    case Kind::wait: return 0;
    case Kind::memory: return entry.kernels;
    case Kind::gemm: return static_cast<int>(entry.gemm.parts * (entry.gemm.grouped ? entry.gemm.batch : 1));
    default: return 1;
  }
}

}  // namespace medley::cost
