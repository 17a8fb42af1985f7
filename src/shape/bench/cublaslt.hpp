// cuBLASLt, opened at run time: the functions the bench calls, and one matrix product prepared for launching.
// Used only by gpu_bench.cpp.
#pragma once

#include <cublasLt.h>

#include <memory>
#include <string>
#include <vector>

#include "cost/gemm.hpp"
#include "shape/words.hpp"

namespace medley::shape {

class CublasLt {
 public:
  /// Opens the library and makes a handle; throws medley::Error (unavailable) saying what is missing.
  CublasLt();
  ~CublasLt();
  CublasLt(const CublasLt&) = delete;
  CublasLt& operator=(const CublasLt&) = delete;
  std::string version() const;

  struct Table;  ///< the resolved functions

 private:
  friend class PreparedGemm;
  std::unique_ptr<Table> lib_;
  cublasLtHandle_t handle_ = nullptr;
};

/// The algorithm chosen by the heuristics, in cuBLASLt's own numbers (cublasLt.h names them).
struct GemmAlgorithm {
  int id = 0, tile = 0, stages = 0, split = 0, cluster = 0, swizzle = 0;
};

/// Descriptors and the algorithms that the heuristics propose, best first.
class PreparedGemm {
 public:
  PreparedGemm(const CublasLt& lib, const Gemm& gemm, int wanted, std::size_t workspace_bytes);
  ~PreparedGemm();
  PreparedGemm(const PreparedGemm&) = delete;
  PreparedGemm& operator=(const PreparedGemm&) = delete;

  int algorithms() const noexcept { return int(found_.size()); }  ///< 0 if cuBLASLt does not offer the product
  GemmAlgorithm algorithm(int i) const;
  /// Launches algorithm `i`; throws medley::Error (system) when cuBLASLt rejects it.
  void launch(int i, const void* a, const void* b, void* c, void* workspace, std::size_t workspace_bytes,
              CUstream_st* stream) const;

 private:
  const CublasLt& lib_;
  cublasLtMatmulDesc_t operation_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, c_ = nullptr;
  std::vector<cublasLtMatmulHeuristicResult_t> found_;
};

}  // namespace medley::shape
