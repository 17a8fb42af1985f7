// How a model is distributed over ranks and how one step is split: the other input of a plan. read_layout
// (read_layout.hpp) reads it from text or a framework's own file; check() rejects impossible layouts.
#pragma once

#include <medley/types.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/model.hpp"

namespace medley::model {

enum class PipelineKind : std::uint8_t { one_f_one_b, gpipe, interleaved };
enum class ContextKind : std::uint8_t { ring, ulysses, all_gather };
/// `selective` is Megatron's: core attention. `per_op` is torchtitan's: every second product and all
/// memory-bound kernels, but neither attention nor reductions.
enum class Recompute : std::uint8_t { none, selective, full, per_op };
/// What the model does. Prefill and decode run forward only; decode runs one new token per sequence against a
/// cache of `seq` tokens. Both need only the last token's logits.
enum class Mode : std::uint8_t { train, prefill, decode };
/// The fused attention kernel: the library's best (cuDNN on Hopper and newer, FlashAttention 2 before), or
/// one by name. `flash1` is the Triton kernel of 2023, which MPT and other FSDP1 codebases trained with.
enum class AttentionKernel : std::uint8_t { best, flash, cudnn, flash1 };

/// Where the scales of fp8 operands come from: earlier steps, the tensor itself (which is read once more), or
/// blocks of 32 elements.
enum class Fp8Recipe : std::uint8_t { delayed, current, mx };
/// Parts of a layer that run again in the backward pass although the rest is kept (Megatron's
/// recompute_modules).
struct RecomputeModules {
  bool norms = false, expert_activation = false, latent_projections = false;
};

/// Framework-specific flags; each default is that framework's own.
struct Flags {
  // Megatron-LM
  bool overlap_grad_reduce = false;
  bool overlap_param_gather = false;
  bool tp_comm_overlap = false;  ///< Transformer Engine's user buffers: SP collectives behind GEMMs
  bool overlap_experts = false;  ///< --overlap-moe-expert-parallel-comm: behind another micro-batch's computation
  RecomputeModules recompute_modules;
  bool activation_fusion = true;   ///< bias_activation_fusion: the activation is one kernel
  bool fused_grouped_mlp = false;  ///< Transformer Engine's: an expert's products with its biases, activation and casts
  bool attention_mask = false;     ///< broadcast the b·s·s mask in the tensor group: Megatron's default; long-context
      ///< runs turn it off because flash attention never reads it; here it is off by default
  bool variable_seq_lengths = false;         ///< 24-byte shape exchange before each activation
  bool overlap_p2p = true;                   ///< interleaved schedules only, as in Megatron
  std::optional<Count> ddp_bucket_elements;  ///< --ddp-bucket-size; default max(40e6, 1e6·d)
  // DeepSpeed
  Count reduce_bucket_elements = 500'000'000;
  Count allgather_bucket_elements = 500'000'000;
  Count prefetch_elements = 50'000'000;
  Count persistence_elements = 100'000;
  Count max_live_elements = 1'000'000'000;
  Count max_reuse_elements = 0;      ///< stage3_max_reuse_distance: parameters at the turn from forward to
                                     ///< backward are not gathered again; 0: all are
  bool partitioned_pipe = true;      ///< pipe_partitioned, grad_partitioned: with tp, stages exchange 1/t and gather
  std::optional<bool> overlap_comm;  ///< default: only stage 3
  bool reduce_scatter = true;
  bool multi_rank_bucket_allreduce = true;
  bool gradient_clipping = true;  ///< one norm all_reduce per step
  // GPT-NeoX
  bool fp32_allreduce = false;  ///< bf16 activations are reduced in f32
  // PyTorch DDP
  Count first_bucket_bytes = Count{1} << 20;
  Count bucket_bytes = Count{25} << 20;
  bool no_sync = true;  ///< gradients are reduced only in the last micro-batch
  // FSDP2
  bool reshard_after_forward = true;
  bool loss_parallel = true;  ///< with tp, DTensor's cross entropy on vocabulary shards; off: logits are gathered
  bool shard_embeddings_apart =
      false;  ///< fully_shard also on embedding and head; otherwise they are in the root group
  // all
  bool flash_attention = true;  ///< off: scores and softmax pass through memory
  AttentionKernel attention = AttentionKernel::best;
  bool compile = false;      ///< torch.compile: chains of element-wise operations run as one kernel
  bool cuda_graphs = false;  ///< kernels are replayed: the host issues none of them
  /// TORCH_DISTRIBUTED_DEBUG=DETAIL: the ranks compare every collective before they issue it. Default: only
  /// nanotron's pipelines over several hosts, as in the Ultra-scale playbook.
  std::optional<bool> distributed_debug;
  bool partial_graphs = false;  ///< Megatron: the host issues only the kernels of experts, token dispatch and head
  bool fp8 = false;             ///< products of linear layers run in fp8; nothing else changes
  Fp8Recipe fp8_recipe = Fp8Recipe::delayed;
  /// Element-wise chains run as single kernels: Megatron's fused kernels, or compile. Set by as_run_by().
  bool fused_kernels = false;
  std::optional<bool> dropout;   ///< default: on for GPTs of Megatron and NeoX
  double capacity_factor = 1.0;  ///< mixture of experts: tokens per expert relative to an even share
};

struct Layout {
  int dp = 1, tp = 1, pp = 1, cp = 1, ep = 1;  ///< world = dp·tp·pp·cp; ep divides dp·cp, or dp·cp·tp/etp
  Count ranks = 0;                             ///< of the whole job, where given (world=64); derive_dp() divides them
  bool dp_given = false;                       ///< by name: `ranks` must then agree
  int etp = 0;                                 ///< ranks that shard one expert (Megatron); 0: tp
  bool sp = false;                             ///< Megatron's sequence parallelism on the tensor group
  int virtual_stages = 1;
  PipelineKind pipeline = PipelineKind::one_f_one_b;
  ContextKind context = ContextKind::ring;
  int zero = 0;
  int hsdp = 1;  ///< FSDP2: replicas of the shard group inside dp
  Recompute recompute = Recompute::none;
  Mode mode = Mode::train;
  Count micro_batch = 1;
  Count global_batch = 0;           ///< 0: one micro-batch per data-parallel rank
  Count accumulation = 0;           ///< micro-batches per step if no global batch is given; 0: one
  Count seq = 0;                    ///< 0: the model's
  DType dtype = DType::bf16;        ///< parameters and activations
  std::optional<DType> grad_dtype;  ///< reduction of gradients; default: the framework's
  Flags flags;

  Count world() const noexcept { return Count{dp} * tp * pp * cp; }
  int expert_tensor() const noexcept { return etp == 0 ? tp : etp; }
  Count micro_batches() const noexcept;  ///< per data-parallel rank and step; check() made it exact
  Count element_bytes() const noexcept { return static_cast<Count>(size_of(dtype)); }
};

/// A rank's coordinates; the order of axes is that of Megatron and DeepSpeed: tensor fastest, then context,
/// data, pipeline.
struct Coordinates {
  int dp = 0, tp = 0, pp = 0, cp = 0;
};
Coordinates coordinates(const Layout& layout, Count rank);
Count rank_of(const Layout& layout, const Coordinates& at);

/// Where `ranks` are given, dp is what tp·pp·cp leaves of them. Throws where that is no whole number, or not the dp that
/// was given. check() does it too, so that a sweep over tp keeps the number of ranks.
void derive_dp(Layout& layout);

/// Rejects impossible layouts, naming the rule: divisibility of heads, layers, batch, sequence, sp without tp
/// … Fills defaults from the model (seq, global_batch).
void check(Layout& layout, const Model& model);

}  // namespace medley::model
