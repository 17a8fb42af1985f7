// Core attention and the three ways of context parallelism: ring, Ulysses, all_gather.
#include <algorithm>

#include "plan/layer.hpp"

namespace medley::plan {

// A window reduces the query-key pairs to compute; a context-parallel rank has an even share of them. Unfused
// kernels compute all pairs and mask them.
void LayerWriter::core_kernel(BlockId to, Phase phase, Span span, Count queries, Count keys, Count heads) const {
  const Layout& l = view_.layout;
  const bool decode = l.mode == Mode::decode;
  const Count batch = l.micro_batch;
  // Latent and linear attention give every head its own keys; otherwise groups of heads share them.
  const Count kv = view_.model.latent_attention() || span == Span::linear
                       ? heads
                       : std::max<Count>(1, view_.local.kv_heads * heads / view_.local.heads);
  const Count qk = view_.model.query_head_dim(), vd = view_.model.value_head_dim();
  attend(to, phase,
         {batch, heads, kv, queries, decode ? view_.model.keys_kept(span, keys) : keys, qk, vd, !decode,
          l.flags.attention, decode ? 1.0 : view_.model.pairs_share(span, l.seq)});
}

void LayerWriter::attend(BlockId to, Phase phase, const Attention& a) const {
  const Layout& l = view_.layout;
  Entry entry;
  entry.phase = phase;
  entry.dtype = l.dtype;
  entry.module = "attention.core";
  if (l.flags.flash_attention) {
    entry.kind = Kind::attention;
    entry.attention = a;
    schedule_.add(to, std::move(entry));
    return;
  }
  // Unfused: scores, softmax, values as batched GEMMs; twice as many in backward. Grouped keys are repeated
  // for each head.
  const Count batches = product({a.batch, a.heads}), scores = product({batches, a.queries, a.keys}, "attention scores");
  const Count q = a.queries, k = a.keys, qk = a.head_dim, vd = a.value_dim;
  const auto batched = [&](const char* module, Gemm shape) {
    Entry g = entry;
    g.kind = Kind::gemm;
    g.module = module;
    g.gemm = shape;
    schedule_.add(to, std::move(g));
  };
  const bool fused = l.flags.fused_kernels, backward = phase == Phase::backward;
  // The softmax reads 16 bits and writes f32 (6 bytes, 10 in backward). In eager mode, scale and mask pass
  // over the scores before it and a cast after it (14 bytes, 10 in backward); fused, all is one kernel that
  // writes 16 bits. Dropout passes over the probabilities once more and writes a mask.
  // Megatron's softmax kernel takes four rows of scores at once; where a rank has another number of heads and
  // sequences, the cast to f32, scale, mask, softmax and the cast back run one by one
  // (FusedScaleMaskSoftmax).
  const bool one_by_one = fused && !l.flags.compile && batches % 4 != 0;
  const auto softmax = [&] {
    const Count bytes = one_by_one ? (backward ? 12 : 8) : backward ? (fused ? 8 : 10) : (fused ? 4 : 6);
    stream(to, StreamOp::softmax, product({scores, bytes}), phase, "attention.softmax");
    if (one_by_one) {
      Entry mask = memory_bound(product({scores, 29}), phase, "attention.mask");
      mask.dtype = l.dtype;
      mask.kernels = 4;
      schedule_.add(to, std::move(mask));
    }
    chain(to, scores, backward ? Passes{10, 0, 2} : Passes{14, 0, 3}, phase, "attention.mask");
    if (l.flags.dropout.value_or(false)) chain(to, scores, {5, 5, 1}, phase, "attention.dropout");
  };
  // Batched products need the heads apart: queries, keys, values and the result are copied.
  chain(to, product({view_.tokens, a.heads, 2 * qk + 2 * vd, view_.e}), {2, 2, 4}, phase, "attention.transpose");
  if (backward) {
    batched("attention.values", {q, k, vd, batches, "TN"});
    batched("attention.values", {k, vd, q, batches, "NT"});
    softmax();
    batched("attention.scores", {q, qk, k, batches, "NN"});
    batched("attention.scores", {k, qk, q, batches, "NT"});
    return;
  }
  batched("attention.scores", {q, k, qk, batches, "TN"});
  softmax();
  batched("attention.values", {q, vd, k, batches, "NN"});
}

// DeepSeek's latent attention in decode: the up-projections of keys and values are absorbed into queries and
// outputs, one small product per head, so that all heads share the cache's one latent key.
void LayerWriter::absorbed(BlockId to, Phase phase) const {
  const LatentAttention& latent = view_.model.latent;
  const Count heads = view_.local.heads;
  const auto product_a_head = [&](const char* module, Count in, Count out) {
    Entry entry;
    entry.kind = Kind::gemm;
    entry.phase = phase;
    entry.dtype = view_.layout.dtype;
    entry.module = module;
    entry.gemm = {view_.tokens, out, in, heads, "TN"};
    schedule_.add(to, std::move(entry));
  };
  product_a_head("attention.absorb_keys", latent.qk_nope_head_dim, latent.kv_lora_rank);
  attend(to, phase,
         {view_.layout.micro_batch, heads, 1, 1, view_.cached, latent.kv_lora_rank + latent.qk_rope_head_dim,
          latent.kv_lora_rank, false, view_.layout.flags.attention, 1.0});
  product_a_head("attention.absorb_values", latent.kv_lora_rank, latent.v_head_dim);
}

void LayerWriter::core(BlockId to, Phase phase, Span span) const {
  const Count heads = view_.local.heads;
  if (view_.model.positions == Positions::rotary) {
    // Latent attention rotates part of a head.
    const Count width = view_.model.latent_attention() ? (heads + 1) * view_.model.latent.qk_rope_head_dim
                                                       : (heads + view_.local.kv_heads) * view_.model.head_dim;
    chain(to, product({view_.tokens, width, view_.e}), rules_.rotary, phase, "attention.rotary");
  }
  if (view_.layout.mode == Mode::decode) return core_kernel(to, phase, span, 1, view_.cached, heads);
  if (view_.layout.cp == 1) return core_kernel(to, phase, span, view_.sequence, view_.sequence, heads);
  switch (view_.layout.context) {
    case ContextKind::ring: return ring(to, phase, span);
    case ContextKind::ulysses: return ulysses(to, phase, span);
    case ContextKind::all_gather: return gathered(to, phase, span);
  }
}

// Keys and values travel around the ring while the current block is attended to; in backward their gradients
// do, too.
void LayerWriter::ring(BlockId to, Phase phase, Span span) const {
  const Count c = view_.layout.cp, s = view_.sequence;
  const Count bytes = product({view_.layout.micro_batch, s, view_.local.kv_heads,
                               view_.model.query_head_dim() + view_.model.value_head_dim(), view_.e},
                              "keys and values");
  Coordinates next = view_.at, previous = view_.at;
  next.cp = (view_.at.cp + 1) % view_.layout.cp;
  previous.cp = (view_.at.cp + view_.layout.cp - 1) % view_.layout.cp;
  const BlockId step = schedule_.add_block();
  const auto pass = [&](std::string_view why) {
    for (const Op op : {Op::send, Op::recv}) {
      Entry entry = async(comm(op, "cp", c, bytes, view_.layout.dtype, phase, "attention.core", why), token::context);
      entry.peer = rank_of(view_.layout, op == Op::send ? next : previous);
      entry.batch = 1;
      schedule_.add(step, std::move(entry));
    }
  };
  pass("keys and values go round the context ring");
  if (phase == Phase::backward) pass("their gradients follow one step behind");
  core_kernel(step, phase, span, s, s, view_.local.heads);
  schedule_.add(step, wait_for(token::context, phase));
  Schedule::Node node;
  node.is_block = true;
  node.index = step;
  node.repeat = c - 1;
  schedule_.add(to, node);
  core_kernel(to, phase, span, s, s, view_.local.heads);
}

// Ulysses exchanges sequence shards for head shards: q, k, v before, the output after; in backward the
// reverse.
void LayerWriter::ulysses(BlockId to, Phase phase, Span span) const {
  const Count c = view_.layout.cp, tokens = view_.tokens;
  const Count query = product({tokens, view_.local.heads, view_.model.query_head_dim(), view_.e}, "queries");
  const Count kv =
      rules_.equal_ulysses
          ? query
          : product({tokens, view_.model.latent_attention() ? view_.local.heads : std::max(view_.local.kv_heads, c),
                     view_.model.query_head_dim(), view_.e},
                    "keys");
  const Count values =
      rules_.equal_ulysses
          ? query
          : product({tokens, view_.model.latent_attention() ? view_.local.heads : std::max(view_.local.kv_heads, c),
                     view_.model.value_head_dim(), view_.e},
                    "values");
  const Count result = rules_.equal_ulysses
                           ? query
                           : product({tokens, view_.local.heads, view_.model.value_head_dim(), view_.e}, "output");
  const auto trade = [&](Count bytes, std::string_view why) {
    add_comm(schedule_, to, comm(Op::all_to_all, "cp", c, bytes, view_.layout.dtype, phase, "attention.core", why));
  };
  const bool backward = phase == Phase::backward;
  if (backward) {
    trade(result, "output gradient: sequence shards become head shards");
  } else {
    trade(query, "queries: sequence shards become head shards");
    trade(kv, "keys: sequence shards become head shards");
    trade(values, "values: sequence shards become head shards");
  }
  core_kernel(to, phase, span, view_.layout.seq, view_.layout.seq, view_.local.heads / c);
  if (backward) {
    trade(query, "query gradient: head shards become sequence shards");
    trade(kv, "key gradient: head shards become sequence shards");
    trade(values, "value gradient: head shards become sequence shards");
  } else {
    trade(result, "output: head shards become sequence shards");
  }
}

// Every rank gathers all keys and values; they are not kept, so the backward pass gathers again.
void LayerWriter::gathered(BlockId to, Phase phase, Span span) const {
  const Count c = view_.layout.cp,
              whole = product({view_.layout.micro_batch, view_.layout.seq, view_.local.kv_heads, view_.e}, "keys");
  const Count keys = product({whole, view_.model.query_head_dim()}, "keys"),
              values = product({whole, view_.model.value_head_dim()}, "values");
  const auto collect = [&](Op op, Count bytes, std::string_view why) {
    add_comm(schedule_, to, comm(op, "cp", c, bytes, view_.layout.dtype, phase, "attention.core", why));
  };
  collect(Op::all_gather, keys, "keys of the whole sequence");
  collect(Op::all_gather, values, "values of the whole sequence");
  core_kernel(to, phase, span, view_.sequence, view_.layout.seq, view_.local.heads);
  if (phase != Phase::backward) return;
  collect(Op::reduce_scatter, keys, "key gradients return to their owners");
  collect(Op::reduce_scatter, values, "value gradients return to their owners");
}

}  // namespace medley::plan
