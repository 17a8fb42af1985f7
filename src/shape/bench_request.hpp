// What `medley shape bench` measures, and how much work that is. bench/measure.hpp measures it, where CUDA
// is.
#pragma once

#include <string>
#include <vector>

#include "cost/gemm.hpp"
#include "shape/words.hpp"

namespace medley::shape {

struct BenchRequest {
  std::string gemms;                      ///< CSV of products; empty: the built-in sweep
  std::string csv = "gemm_sweep.csv";     ///< where the measured rows go
  std::string stream_csv, attention_csv;  ///< also measure these kernels into files
  std::string gpu = "h200-sxm";           ///< of the table, for the calibration
  double seconds = 240;                   ///< stop after this long
  double duty = 0.5;                      ///< share of the time that the GPU is kept busy
  bool quick = false;                     ///< at most one minute
  int best_of = 8, best_of_every = 16;    ///< algorithms of cuBLASLt to try, on every i-th product
};

std::vector<Gemm> bench_gemms(const BenchRequest& request);

struct BenchWork {
  std::size_t products = 0;
  double flops = 0;  ///< of each product once
};
BenchWork bench_work(const BenchRequest& request);

}  // namespace medley::shape
