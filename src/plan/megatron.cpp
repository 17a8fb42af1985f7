// A step as Megatron-LM issues it: asynchronous input gradients, interleaved 1F1B, gradient buckets, the
// distributed optimizer, and the small reductions around them.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "plan/frameworks.hpp"

namespace medley::plan {
namespace {

class Megatron {
 public:
  Megatron(const Model& m, const Layout& l, Count rank)
      : view_(m, l, rank,
              {.pad_vocabulary = true, .fuse_projections = true, .uneven = ViewOptions::Uneven::count_ends}),
        flags_(view_.layout.flags),
        grad_(megatron_gradients(l)),
        sharded_(l.zero >= 1),
        gathers_(sharded_ && flags_.overlap_param_gather),
        aligned_(gathers_ && l.pp > 1 && l.virtual_stages > 1),
        body_(view_, schedule_, rules(l)) {
    if (l.zero > 1) refuse(Framework::megatron, fmt::format("zero is {}; its distributed optimizer is zero=1", l.zero));
    if (m.kv_heads % l.tp != 0)
      refuse(Framework::megatron, fmt::format("{} query groups are not divisible by tp {}", m.kv_heads, l.tp));
    if (m.moe() && l.tp > 1 && !l.sp) refuse(Framework::megatron, "experts with tp above 1 need sp=on");
  }

  Schedule make() {
    plan_buckets();
    const PipelineRules rules{.batched = true,
                              .shape_exchange = flags_.variable_seq_lengths,
                              .overlap = view_.layout.virtual_stages > 1 && flags_.overlap_p2p};
    if (aligned_) {
      for (const int chunk : {0, 1}) add_gathers(chunk);
    }
    write_pipeline(view_, schedule_, 0, rules, [&](const Pass& pass) {
      if (aligned_ && pass.forward) gather_ahead();
      return pass_block(pass);
    });
    finish_gradients();
    step();
    return std::move(schedule_);
  }

 private:
  static TensorRules rules(const Layout& l) {
    TensorRules r;
    r.regather = r.async_backward = r.reduces_learned_positions = true;
    r.overlap_forward = l.flags.tp_comm_overlap;
    r.overlap_experts = l.flags.overlap_experts;
    r.eager_experts = true;
    r.reduce_dtype = l.dtype;
    r.main_gradients = megatron_gradients(l);
    return r;
  }

  struct Buffer {
    int chunk;
    bool expert;
    std::vector<Bucket> buckets;
  };

  Count group(bool expert) const { return expert ? view_.expert_dp_group : view_.dp_group; }
  static std::string_view group_name(bool expert) { return expert ? "edp" : "dp"; }

  // Each chunk has a buffer for dense and one for expert parameters. Only chunk 0 of stage 0 is split into
  // buckets, and only when reductions overlap: elsewhere the pipeline's bubble leaves nothing to hide behind.
  void plan_buckets() {
    for (int chunk = 0; chunk < static_cast<int>(view_.chunks.size()); ++chunk) {
      for (const bool expert : {false, true}) {
        const auto tensors = view_.tensors(chunk);
        const Count wanted =
            flags_.ddp_bucket_elements.value_or(std::max<Count>(40'000'000, product({1'000'000, view_.dp_group})));
        const bool cut =
            (flags_.overlap_grad_reduce || flags_.overlap_param_gather) && view_.first_stage() && chunk == 0;
        const Count limit = cut ? wanted : INT64_MAX;
        Buffer buffer{chunk, expert, fill_buckets(tensors, expert, limit, limit)};
        for (Bucket& bucket : buffer.buckets) {
          bucket.elements = padded(bucket.elements, expert);
          bucket.number = numbers_++;
        }
        buffers_.push_back(std::move(buffer));
      }
    }
  }

  // The distributed optimizer splits buckets evenly and keeps slices aligned for the kernels: lcm(d, 128).
  Count padded(Count elements, bool expert) const {
    return sharded_ ? round_up(elements, std::lcm(group(expert), Count{128})) : elements;
  }

  Entry reduction(const Bucket& bucket, bool expert, bool overlapped) const {
    const Op op = sharded_ ? Op::reduce_scatter : Op::all_reduce;
    Entry entry =
        comm(op, group_name(expert), group(expert),
             product({bucket.elements, static_cast<Count>(size_of(grad_))}, "gradients"), grad_,
             overlapped ? Phase::backward : Phase::grad_sync, "gradients",
             sharded_ ? "distributed optimizer: each replica averages its slice" : "replicas average their gradients");
    return overlapped ? async(std::move(entry), token::gradients) : entry;
  }

  Entry gather(const Bucket& bucket, bool expert, bool overlapped) const {
    Entry entry =
        comm(Op::all_gather, group_name(expert), group(expert), product({bucket.elements, view_.e}, "parameters"),
             view_.layout.dtype, overlapped ? Phase::forward : Phase::optimizer, "parameters",
             "distributed optimizer: updated slices become whole parameters");
    return overlapped ? async(std::move(entry), bucket_token(bucket)) : entry;
  }
  /// Each bucket completes on its own: a layer waits only for the buckets with its parameters.
  int bucket_token(const Bucket& bucket) const { return token::first_bucket + bucket.number; }

  std::vector<Entry> wait_for_parameters(int chunk, Count layer) const {
    std::vector<Entry> out;
    for (const Buffer& buffer : buffers_) {
      if (buffer.chunk != chunk || group(buffer.expert) < 2) continue;
      for (const Bucket& b : buffer.buckets) {
        // In forward, a bucket is first needed at the layer that completed it in backward.
        if (b.last_layer == layer) out.push_back(wait_for(bucket_token(b), Phase::forward));
      }
    }
    return out;
  }

  Schedule::BlockId pass_block(const Pass& pass) {
    const bool last = !pass.forward && flags_.overlap_grad_reduce && pass.micro_batch == view_.micro_batches - 1;
    const bool first = pass.forward && gathers_ && pass.micro_batch == 0;
    BodyHooks hooks;
    if (pass.forward && view_.layout.tp > 1)
      hooks.at_start = [&, first](int chunk, bool) { return start_of_forward(chunk, first); };
    else if (first && !aligned_) hooks.at_start = [&](int chunk, bool) { return parameter_gathers(chunk); };
    if (first) hooks.before = [&, chunk = pass.chunk](Count layer, bool) { return wait_for_parameters(chunk, layer); };
    if (last) hooks.after = [&, chunk = pass.chunk](Count layer, bool) { return ready_buckets(chunk, layer); };
    return body_.block(pass.chunk, pass.forward, last || first ? 1 : 0, hooks);
  }

  // Interleaved, all stages start the gather of a chunk at the same time (align_param_gather, the default of
  // Megatron-LM and NeMo): chunks 0 and 1 at the start of the step, chunk c + 1 with the virtual micro-batch
  // that reaches chunk c, counted from the end of the pipeline. Otherwise each stage gathers at the start of
  // its own first forward pass, behind which the next stage waits.
  void gather_ahead() {
    const Count reached = forward_passes_++ + view_.at.pp;
    const Count chunk = reached / view_.layout.pp + 1;
    if (reached % view_.layout.pp == 0 && chunk > 1 && chunk < view_.layout.virtual_stages)
      add_gathers(static_cast<int>(chunk));
  }
  void add_gathers(int chunk) {
    for (Entry& entry : parameter_gathers(chunk)) schedule_.add(0, std::move(entry));
  }

  std::vector<Entry> start_of_forward(int chunk, bool first) const {
    std::vector<Entry> out = first && !aligned_ ? parameter_gathers(chunk) : std::vector<Entry>{};
    const Chunk& c = view_.chunks[static_cast<std::size_t>(chunk)];
    const auto broadcast = [&](Count bytes, DType dtype, std::string_view why) {
      out.push_back(comm(Op::broadcast, "tp", view_.layout.tp, bytes, dtype, Phase::forward, "data", why));
    };
    // get_batch_on_this_tp_rank: tensor rank 0 reads the data; only the first and last stage need it.
    const Count ids = product({view_.layout.micro_batch, view_.layout.seq, 8}, "tokens");
    if (c.embedding) broadcast(ids, DType::i64, "tokens, read by tensor rank 0");
    if (c.head) {
      broadcast(ids, DType::i64, "labels, read by tensor rank 0");
      broadcast(ids / 2, DType::f32, "loss mask, read by tensor rank 0");
    }
    if ((c.embedding || c.head) && flags_.attention_mask) {
      broadcast(product({view_.layout.micro_batch, view_.layout.seq, view_.layout.seq}, "attention mask"),
                DType::boolean, "attention mask, read by tensor rank 0");
    }
    if (c.embedding) broadcast(ids, DType::i64, "positions, read by tensor rank 0");
    return out;
  }

  std::vector<Entry> parameter_gathers(int chunk) const {
    std::vector<Entry> out;
    for (const Buffer& buffer : buffers_) {
      if (buffer.chunk != chunk || group(buffer.expert) < 2) continue;
      // The forward pass needs the first layers first: the bucket filled last.
      for (auto b = buffer.buckets.rbegin(); b != buffer.buckets.rend(); ++b)
        out.push_back(gather(*b, buffer.expert, true));
    }
    return out;
  }

  std::vector<Entry> ready_buckets(int chunk, Count layer) const {
    std::vector<Entry> out;
    for (const Buffer& buffer : buffers_) {
      if (buffer.chunk != chunk || group(buffer.expert) < 2) continue;
      for (const Bucket& b : buffer.buckets) {
        if (b.last_layer == layer) out.push_back(reduction(b, buffer.expert, true));
      }
    }
    return out;
  }

  void finish_gradients() {
    const auto all = [&](Entry entry) { add_comm(schedule_, 0, std::move(entry)); };
    if (flags_.overlap_grad_reduce) {
      schedule_.add(0, wait_for(token::gradients, Phase::grad_sync));
    } else {
      for (const Buffer& buffer : buffers_) {
        for (const Bucket& b : buffer.buckets) all(reduction(b, buffer.expert, false));
      }
    }
    const Count wide = static_cast<Count>(size_of(grad_));
    if (view_.layout.sp) {
      // Norms, routers and biases of row-parallel layers see only this rank's part of the sequence.
      Count partial = 0;
      for (const LocalTensor& t : view_.tensors()) {
        const bool whole_expert = t.expert() && view_.layout.expert_tensor() == 1;
        if (t.tensor->part != Part::embedding && t.tensor->part != Part::positions && t.tensor->shard == Shard::none &&
            !whole_expert)
          partial += t.elements;
      }
      all(comm(Op::all_reduce, "tp", view_.layout.tp, product({partial, wide}), grad_, Phase::grad_sync, "norms",
               "sequence parallelism: replicated parameters saw only part of the tokens"));
    }
    if (view_.model.tied_embeddings && view_.layout.pp > 1 && (view_.first_stage() || view_.last_stage())) {
      all(comm(Op::all_reduce, "embedding", 2, product({view_.local.vocab, view_.model.hidden, wide}, "embedding"),
               grad_, Phase::grad_sync, "embedding", "first and last stage share the embedding"));
    }
  }

  void step() {
    const Count stats = sharded_ ? view_.layout.world() : view_.model_group;
    const std::string_view stats_group = sharded_ ? "world" : "model";
    const auto scalar = [&](Op op, std::string_view name, Count size, Count bytes, ReduceOp reduce,
                            std::string_view why) {
      Entry entry = comm(op, name, size, bytes, DType::f32, Phase::optimizer, "scalars", why);
      entry.reduce = reduce;
      entry.purpose = reduce == ReduceOp::max ? Purpose::overflow : bytes == 8 ? Purpose::loss : Purpose::gradient_norm;
      add_comm(schedule_, 0, std::move(entry));
    };
    if (view_.layout.dtype == DType::f16)
      scalar(Op::all_reduce, stats_group, stats, 4, ReduceOp::max, "found_inf of the loss scaler");
    if (flags_.gradient_clipping) scalar(Op::all_reduce, stats_group, stats, 4, ReduceOp::sum, "norm of all gradients");
    const Count all = sum(ceil_div(elements(view_.tensors(), false), sharded_ ? view_.dp_group : 1),
                          ceil_div(elements(view_.tensors(), true), sharded_ ? view_.expert_dp_group : 1));
    schedule_.add(0, memory_bound(product({all, adam_bytes_per_parameter}), Phase::optimizer, "adam"));
    if (sharded_ && !flags_.overlap_param_gather) {
      for (const Buffer& buffer : buffers_) {
        for (const Bucket& b : buffer.buckets) add_comm(schedule_, 0, gather(b, buffer.expert, false));
      }
    }
    if (view_.last_stage())
      scalar(Op::all_reduce, "dp", view_.dp_group, 8, ReduceOp::sum, "loss and number of tokens, for the log");
  }

  View view_;
  Flags flags_;
  DType grad_;
  bool sharded_;
  bool gathers_;  ///< parameters are gathered during the forward passes
  bool aligned_;  ///< and by all stages at the same time
  Count forward_passes_ = 0;
  Schedule schedule_;
  Body body_;
  std::vector<Buffer> buffers_;
  int numbers_ = 0;
};

}  // namespace

Schedule megatron_schedule(const Model& m, const Layout& l, Count rank) { return Megatron(m, l, rank).make(); }

}  // namespace medley::plan
