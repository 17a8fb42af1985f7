// The functions behind make_schedule(), one per framework and file.
#pragma once

#include "plan/body.hpp"
#include "plan/framework.hpp"

namespace medley::plan {

Schedule textbook_schedule(const Model& model, const Layout& layout, Count rank);
Schedule megatron_schedule(const Model& model, const Layout& layout, Count rank);
Schedule deepspeed_schedule(const Model& model, const Layout& layout, Count rank);
Schedule neox_schedule(const Model& model, const Layout& layout, Count rank);
Schedule ddp_schedule(const Model& model, const Layout& layout, Count rank);
Schedule fsdp2_schedule(const Model& model, const Layout& layout, Count rank);
Schedule fsdp1_schedule(const Model& model, const Layout& layout, Count rank);
Schedule nanotron_schedule(const Model& model, const Layout& layout, Count rank);

/// Throws Error(invalid): "framework: what it cannot do; what to do instead".
[[noreturn]] void refuse(Framework framework, const std::string& sentence);

/// Megatron accumulates and reduces in f32 when it trains in bf16, unless told otherwise (arguments.py).
inline DType megatron_gradients(const Layout& l) {
  return l.grad_dtype.value_or(l.dtype == DType::bf16 ? DType::f32 : l.dtype);
}

/// Bytes an optimizer (Adam, f32 state and master copy) reads and writes per parameter it updates:
/// gradient 4, master 4+4, two moments 4+4 each, parameter 2.
inline constexpr Count adam_bytes_per_parameter = 30;

/// Buckets of tensors in backward order, closed as soon as they hold `limit` or more (Megatron, DDP).
struct Bucket {
  Count elements = 0;
  Count last_layer = 0;  ///< the layer whose backward pass completes it
  int number = 0;        ///< its number among a rank's buckets, where they must be distinguished
};
std::vector<Bucket> fill_buckets(const std::vector<LocalTensor>& tensors, bool expert, Count first_limit, Count limit);

}  // namespace medley::plan
