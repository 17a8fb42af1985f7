// Reads matrix products from a CSV file with a header, for `medley shape gemm` and `medley shape bench`.
#pragma once

#include <istream>
#include <string>
#include <vector>

#include "shape/gemm.hpp"

namespace medley::shape {

/// Columns m, n, k, and optionally batch, layout, type (or dtype), name; any order, others ignored.
/// Throws medley::Error (invalid) naming the file, the line and the value.
std::vector<Gemm> read_gemm_csv(const std::string& path);
std::vector<Gemm> read_gemm_csv(std::istream& in, const std::string& path);

/// The same product in cuBLAS's column-major words: a row-major C = op(A)·op(B) is Cᵀ = op(B)ᵀ·op(A)ᵀ.
/// Row-major NT (both k contiguous) becomes TN, NN stays NN, TN becomes NT; m and n change places.
Gemm from_row_major(const Gemm& gemm);

}  // namespace medley::shape
