// What one rank computes and sends in one training step, in issue order: the product of `medley plan`, the
// input of the cost model, of replay and of reconcile. A trace has the same rows with times added.
#pragma once

#include <functional>
#include <medley/types.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/wire_bytes.hpp"
#include "plan/words.hpp"

namespace medley::plan {

enum class Kind : std::uint8_t { gemm, attention, memory, comm, wait };
enum class Phase : std::uint8_t { forward, recompute, backward, grad_sync, optimizer };
/// Memory-bound kernels, told apart since each reaches its own share of the bandwidth.
enum class StreamOp : std::uint8_t { elementwise, layer_norm, layer_norm_backward, softmax };
/// What small reductions are for, where other tools' lists tell them apart.
enum class Purpose : std::uint8_t { unspecified, loss, gradient_norm, overflow };
std::string_view name(Kind kind) noexcept;
std::string_view name(Phase phase) noexcept;

/// D(m×n) = A(m×k)·B(k×n), `batch` times; `layout` in BLAS words as cuBLAS sees PyTorch's linear layers:
/// TN forward (m tokens, n outputs), NN input gradient, NT weight gradient.
struct Gemm {
  Count m = 0, n = 0, k = 0, batch = 1;
  std::string_view layout = "TN";  ///< always a literal
  bool fp8 = false;
  double flops() const noexcept {
    return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) *
           static_cast<double>(batch);
  }
};

/// A fused (flash) attention kernel; the phase of its entry says whether forward or backward.
struct Attention {
  Count batch = 0, heads = 0, kv_heads = 0;  ///< of this rank
  Count queries = 0, keys = 0;               ///< tokens
  Count head_dim = 0, value_dim = 0;
  bool causal = true;
  AttentionKernel kernel = AttentionKernel::best;
  double share = 1;  ///< of the pairs of queries and keys (below the diagonal when causal), what is computed
};

/// One thing a rank does. Which of the fields below count follows from `kind`.
struct Entry {
  Kind kind = Kind::comm;
  Phase phase = Phase::forward;
  std::string module;  ///< "attention.qkv", "embedding", "gradients", …
  DType dtype = DType::bf16;

  Gemm gemm;            ///< Kind::gemm
  Attention attention;  ///< Kind::attention
  Count bytes = 0;  ///< Kind::memory: bytes read + written; Kind::comm: the full tensor S as in CONTRACT.md

  // Kind::memory
  StreamOp stream = StreamOp::elementwise;
  int kernels = 1;  ///< that share the bytes, one after another

  // Kind::comm
  Op op = Op::all_reduce;
  ReduceOp reduce = ReduceOp::sum;
  std::string_view group;  ///< "tp", "dp", "pp", "cp", "ep", "edp", "embedding", "model", "tp_ep", "fsdp",
                           ///< "hsdp", "world"; a literal (see groups.hpp)
  Count group_size = 1;
  Count peer = -1;       ///< send, recv: the other rank, global
  bool exposed = true;   ///< nothing of this rank's compute runs meanwhile; always true when token is 0
  std::string_view why;  ///< a literal, for people
  Purpose purpose = Purpose::unspecified;
  int token = 0;  ///< 0: blocks the compute stream. Else asynchronous, until a wait with this token
  int batch = 0;  ///< neighbours with the same non-zero batch start together (batch_isend_irecv)
  // Kind::wait: `token` says which asynchronous operations must have finished: all outstanding ones that
  // carry it
};

/// Where an expanded entry belongs.
struct Place {
  Count micro_batch = -1;  ///< -1: not of one micro-batch
  Count layer = -1;        ///< of the whole model; -1: outside the layers
  int chunk = 0;           ///< virtual stage on this rank
};

using core::wire_bytes;

/// A tree of blocks: layers and micro-batches repeat, so a step of a million operations is a few hundred
/// nodes.
///
/// How a cost model walks it. Two streams suffice: compute time t, and for each group the time its link is
/// free.
///   gemm, attention, memory: t += its time.
///   comm with token 0: start = max(t, free[group]); t = free[group] = start + its time (entries of one
///   batch: the
///     longest of them). recv also waits for the peer's send: simulate the pp stages side by side for that.
///   comm with a token: start = max(t, free[group]); free[group] = done[token] = start + its time; t stays.
///   wait: t = max(t, done[token]).
/// walk() expands everything in order. For speed visit blocks instead: a block's duration from a common start
/// is a constant, so compute it once per block() and multiply by the repeat of each node that names it.
class Schedule {
 public:
  using BlockId = std::uint32_t;
  struct Node {
    bool is_block = false;
    std::uint32_t index = 0;  ///< of entries() or of blocks()
    Count repeat = 1;         ///< blocks only
    Count micro_batch = -1;   ///< set for all that lies below, when ≥ 0
    Count layer = -1;         ///< first layer; repeat r belongs to layer + r·layer_step
    int layer_step = 1;       ///< −1 in the backward pass
    int chunk = -1;
  };
  using Block = std::vector<Node>;

  const std::vector<Entry>& entries() const noexcept { return entries_; }
  const std::vector<Block>& blocks() const noexcept { return blocks_; }
  const Block& block(BlockId id) const { return blocks_[id]; }
  /// The whole step.
  const Block& root() const { return blocks_[0]; }

  /// Calls `visit` for every entry of the step in issue order, expanded.
  void walk(const std::function<void(const Entry&, const Place&)>& visit) const;
  /// Calls `visit` once per entry with how often it occurs in the step: all that volumes need.
  void tally(const std::function<void(const Entry&, Count count)>& visit) const;

  // Building: blocks before the nodes that name them; block 0 is the step.
  Schedule() : blocks_(1) {}
  BlockId add_block() {
    blocks_.emplace_back();
    return static_cast<BlockId>(blocks_.size() - 1);
  }
  /// `node` says where the entry belongs; its index is filled in.
  void add(BlockId to, Entry entry, Node node);
  void add(BlockId to, Entry entry) { add(to, std::move(entry), Node{}); }
  /// The entry `index` once more: every micro-batch sends the same messages, and they are priced once.
  void add_again(BlockId to, std::uint32_t index, Node node);
  void add(BlockId to, const Node& node) { blocks_[to].push_back(node); }
  /// Gives a block a new, higher number, so that blocks made meanwhile may be named in it.
  BlockId move_to_end(BlockId id);
  bool empty(BlockId id) const { return blocks_[id].empty(); }

 private:
  void walk(const Block& block, Place place,
            const std::function<void(const Entry&, const Place&)>& visit) const;
  std::vector<Entry> entries_;
  std::vector<Block> blocks_;
};

}  // namespace medley::plan
