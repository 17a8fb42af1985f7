// Floating-point operations of one training step, as papers count them. Used for TFLOP/s per GPU.
#pragma once

#include "cost/words.hpp"

namespace medley::cost {

/// Model FLOPs of one step over all GPUs: three times the forward pass (backward counts double), matrix
/// products only, attention as full squares (4·s²·h per layer and sequence), logits included, nothing
/// recomputed; layers with a window count the part of the square that is in it. For a GPT this is
/// 72·B·s·l·h²·(1 + s/(6h) + V/(12lh)).
double model_flops(const Model& model, const Layout& layout);

/// What the GPUs really run: with full recompute the layers count four times forward, as in the formula of
/// Megatron's SC'21 paper, 96·B·s·l·h²·(1 + s/(6h) + V/(16lh)); with selective recompute only the attention
/// scores do.
double hardware_flops(const Model& model, const Layout& layout);

}  // namespace medley::cost
