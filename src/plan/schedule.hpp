// What one rank computes and sends in one training step, in issue order: the output of `medley plan`, the
// input of the cost model, replay and reconcile. A trace has the same rows plus times.
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
/// Memory-bound kernels by kind, because each reaches a different share of the bandwidth.
enum class StreamOp : std::uint8_t { elementwise, layer_norm, layer_norm_backward, softmax };
/// Purposes of small reductions, where other tools' lists distinguish them.
enum class Purpose : std::uint8_t { unspecified, loss, gradient_norm, overflow };
std::string_view name(Kind kind) noexcept;
std::string_view name(Phase phase) noexcept;

/// D(m×n) = A(m×k)·B(k×n), `batch` times; `layout` is the BLAS layout with which PyTorch's linear layers call
/// cuBLAS: TN forward (m tokens, n outputs), NN input gradient, NT weight gradient.
struct Gemm {
  Count m = 0, n = 0, k = 0, batch = 1;
  std::string_view layout = "TN";  ///< always a literal
  bool fp8 = false;
  Count parts = 1;        ///< runs as this many kernels with m / parts rows each, to overlap a collective in chunks
  Count accumulated = 0;  ///< bytes per element of D that the product reads, or writes beyond 16 bits, to add to D
  bool grouped = false;   ///< the batch consists of different experts' weights: one kernel each, on several streams
  double flops() const noexcept {
    return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) * static_cast<double>(batch);
  }
};

/// A fused (flash) attention kernel; the entry's phase says whether forward or backward.
struct Attention {
  Count batch = 0, heads = 0, kv_heads = 0;  ///< on this rank
  Count queries = 0, keys = 0;               ///< tokens
  Count head_dim = 0, value_dim = 0;
  bool causal = true;
  AttentionKernel kernel = AttentionKernel::best;
  double share = 1;  ///< the computed share of the query-key pairs (those below the diagonal when causal)
};

/// One action of a rank. `kind` determines which of the fields below apply.
struct Entry {
  Kind kind = Kind::comm;
  Phase phase = Phase::forward;
  std::string module;  ///< "attention.qkv", "embedding", "gradients", …
  DType dtype = DType::bf16;

  Gemm gemm;            ///< Kind::gemm
  Attention attention;  ///< Kind::attention
  Count bytes = 0;      ///< Kind::memory: bytes read + written; Kind::comm: the full tensor S as in CONTRACT.md

  // Kind::memory
  StreamOp stream = StreamOp::elementwise;
  int kernels = 1;    ///< the bytes are spread over this many kernels in sequence
  bool loop = false;  ///< the kernels come from a loop over tensors outside autograd, which the host issues fast

  // Kind::comm
  Op op = Op::all_reduce;
  ReduceOp reduce = ReduceOp::sum;
  std::string_view group;  ///< "tp", "dp", "pp", "cp", "ep", "etp", "edp", "embedding", "model", "tp_ep",
                           ///< "fsdp", "hsdp", "world"; a literal (see groups.hpp)
  Count group_size = 1;
  Count peer = -1;       ///< send, recv: the other rank, global
  bool exposed = true;   ///< no compute of this rank runs meanwhile; always true when token is 0
  std::string_view why;  ///< a literal, for people to read
  Purpose purpose = Purpose::unspecified;
  int token = 0;  ///< 0: blocks the compute stream. Else asynchronous, until a wait with this token
  /// The share of an asynchronous operation that cannot start before the kernels it overlaps have ended.
  double tail = 0;
  int batch = 0;  ///< neighbours with the same non-zero batch start together (batch_isend_irecv)
  // Kind::wait: waits for all outstanding asynchronous operations with this `token`
};

/// The position of an expanded entry.
struct Place {
  Count micro_batch = -1;  ///< -1: belongs to no single micro-batch
  Count layer = -1;        ///< in the whole model; -1: outside the layers
  int chunk = 0;           ///< virtual stage on this rank
};

using core::wire_bytes;

/// A tree of blocks: layers and micro-batches repeat, so a step of a million operations is a few hundred
/// nodes.
///
/// A cost model walks it with the compute time t and, for each group, the time when its link is free:
///   gemm, attention, memory: t += its time.
///   comm with token 0: start = max(t, free[group]); t = free[group] = start + its time (of one batch: the
///     longest). recv also waits for the peer's send: for that, simulate the pp stages together.
///   comm with a token: start = max(t, free[group]); free[group] = done[token] = start + its time; t stays.
///   wait: t = max(t, done[token]).
/// walk() expands everything in order. Visiting blocks is faster: a block's duration from a common start is
/// a constant, so compute it once per block() and multiply by the repeat of each node that refers to it.
class Schedule {
 public:
  using BlockId = std::uint32_t;
  struct Node {
    bool is_block = false;
    std::uint32_t index = 0;  ///< in entries() or blocks()
    Count repeat = 1;         ///< blocks only
    Count micro_batch = -1;   ///< applies to everything below, when ≥ 0
    Count layer = -1;         ///< first layer; repeat r is layer + r·layer_step
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
  /// Calls `visit` once per entry with its number of occurrences in the step: enough for volumes.
  void tally(const std::function<void(const Entry&, Count count)>& visit) const;

  // Building: blocks come before the nodes that refer to them; block 0 is the step.
  Schedule() : blocks_(1) {}
  BlockId add_block() {
    blocks_.emplace_back();
    return static_cast<BlockId>(blocks_.size() - 1);
  }
  /// `node` gives the entry's position; its index is filled in.
  void add(BlockId to, Entry entry, Node node);
  void add(BlockId to, Entry entry) { add(to, std::move(entry), Node{}); }
  /// Adds the entry `index` again: every micro-batch sends the same messages, and they are priced once.
  void add_again(BlockId to, std::uint32_t index, Node node);
  void add(BlockId to, const Node& node) { blocks_[to].push_back(node); }
  /// Gives a block a new, higher number, so that it may refer to blocks made meanwhile.
  BlockId move_to_end(BlockId id);
  bool empty(BlockId id) const { return blocks_[id].empty(); }

 private:
  void walk(const Block& block, Place place, const std::function<void(const Entry&, const Place&)>& visit) const;
  std::vector<Entry> entries_;
  std::vector<Block> blocks_;
};

}  // namespace medley::plan
