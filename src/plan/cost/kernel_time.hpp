// How long one kernel keeps a GPU busy: matrix products, fused attention, memory-bound passes. The only place
// where the cost model looks inside a GPU, so that a better GPU model replaces it here.
#pragma once

#include "plan/cost/constants.hpp"
#include "plan/schedule.hpp"
#include "shape/gpu_model.hpp"

namespace medley::plan {

class KernelTime {
 public:
  KernelTime(const shape::Gpu& gpu, const CostConstants& constants);

  double gemm_us(const Gemm& gemm, DType dtype) const;
  double attention_us(const Attention& attention, bool backward) const;
  double memory_us(double bytes) const { return bytes / memory_rate_; }

 private:
  double datasheet_gemm_us(const Gemm& gemm, DType dtype) const;

  shape::GpuModel model_;
  double sms_;
  double matmul_rate_;  ///< FLOP per microsecond, the whole GPU
  double memory_rate_;  ///< bytes per microsecond
  CostConstants constants_;
};

}  // namespace medley::plan
