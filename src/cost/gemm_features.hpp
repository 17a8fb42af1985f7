// The features of the measured correction: a product's sizes, alignments and how it fills the GPU. Shared by
// fitting and predicting, so that both use the same numbers.
#pragma once

#include <array>

#include "cost/tile_model.hpp"

namespace medley::cost {

inline constexpr std::size_t gemm_feature_count = 41;
using GemmFeatures = std::array<float, gemm_feature_count>;

GemmFeatures gemm_features(const Gemm& gemm, const TileChoice& choice, int sms);

}  // namespace medley::cost
