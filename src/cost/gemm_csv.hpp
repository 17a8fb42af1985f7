// Reads matrix products from a CSV file with a header, for `medley shape gemm` and `medley shape bench`.
#pragma once

#include <istream>
#include <string>
#include <vector>

#include "cost/gemm.hpp"

namespace medley::cost {

/// Columns m, n, k, and optionally batch, layout, type (or dtype), name; any order, others ignored.
/// Throws medley::Error (invalid) naming the file, the line and the value.
std::vector<Gemm> read_gemm_csv(const std::string& path);
std::vector<Gemm> read_gemm_csv(std::istream& in, const std::string& path);

/// The cuBLAS call for a product as PyTorch's users write it: C(m×n) is row-major and cuBLAS is column-major,
/// so m and n are exchanged. The layout already names that call: TN for X·Wᵀ (both with k contiguous), NN for
/// the gradient of X, NT for the gradient of W.
Gemm called_for_rows(const Gemm& gemm);

}  // namespace medley::cost
