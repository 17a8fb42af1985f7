// Core attention and the three ways of context parallelism: ring, Ulysses, all_gather.
#include "plan/layer.hpp"

namespace medley::plan {

void LayerWriter::core_kernel(BlockId to, Phase phase, Count queries, Count keys, Count heads) const {
  const Layout& l = view_.layout;
  const Count batch = l.micro_batch,
              kv = std::max<Count>(1, view_.local.kv_heads * heads / view_.local.heads);
  const Count qk = view_.model.query_head_dim(), vd = view_.model.value_head_dim();
  Entry entry;
  entry.phase = phase;
  entry.dtype = l.dtype;
  entry.module = "attention.core";
  if (l.flags.flash_attention) {
    entry.kind = Kind::attention;
    entry.attention = {batch, heads, kv, queries, keys, qk, vd, true};
    schedule_.add(to, std::move(entry));
    return;
  }
  // Unfused: scores, softmax, values as batched GEMMs; twice as many backwards.
  const Count batches = product({batch, heads}),
              plane = product({batches, queries, keys, view_.e}, "attention scores");
  const auto batched = [&](const char* module, Gemm shape) {
    Entry g = entry;
    g.kind = Kind::gemm;
    g.module = module;
    g.gemm = shape;
    schedule_.add(to, std::move(g));
  };
  if (phase == Phase::backward) {
    batched("attention.values", {queries, keys, vd, batches, "TN"});
    batched("attention.values", {keys, vd, queries, batches, "NT"});
    memory(to, product({plane, 5}, "attention scores"), phase, "attention.softmax");
    batched("attention.scores", {queries, qk, keys, batches, "NN"});
    batched("attention.scores", {keys, qk, queries, batches, "NT"});
    return;
  }
  batched("attention.scores", {queries, keys, qk, batches, "TN"});
  memory(to, product({plane, 4}, "attention scores"), phase, "attention.softmax");
  batched("attention.values", {queries, vd, keys, batches, "NN"});
}

void LayerWriter::core(BlockId to, Phase phase) const {
  const Count heads = view_.local.heads;
  if (view_.model.positions == Positions::rotary) {
    memory(to,
           product({2, view_.tokens, heads + view_.local.kv_heads, view_.model.query_head_dim(), view_.e}),
           phase, "attention.rotary");
  }
  if (view_.layout.cp == 1) return core_kernel(to, phase, view_.sequence, view_.sequence, heads);
  switch (view_.layout.context) {
    case ContextKind::ring:
      return ring(to, phase);
    case ContextKind::ulysses:
      return ulysses(to, phase);
    case ContextKind::all_gather:
      return gathered(to, phase);
  }
}

// Keys and values travel round the ring while the block at hand is attended to; backwards their gradients
// travel too.
void LayerWriter::ring(BlockId to, Phase phase) const {
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
      Entry entry =
          async(comm(op, "cp", c, bytes, view_.layout.dtype, phase, "attention.core", why), token::context);
      entry.peer = rank_of(view_.layout, op == Op::send ? next : previous);
      entry.batch = 1;
      schedule_.add(step, std::move(entry));
    }
  };
  pass("keys and values go round the context ring");
  if (phase == Phase::backward) pass("their gradients follow one step behind");
  core_kernel(step, phase, s, s, view_.local.heads);
  schedule_.add(step, wait_for(token::context, phase));
  Schedule::Node node;
  node.is_block = true;
  node.index = step;
  node.repeat = c - 1;
  schedule_.add(to, node);
  core_kernel(to, phase, s, s, view_.local.heads);
}

// Ulysses trades sequence shards for head shards: q, k, v before, the output after; backwards the same in
// reverse.
void LayerWriter::ulysses(BlockId to, Phase phase) const {
  const Count c = view_.layout.cp, tokens = view_.tokens;
  const Count query = product({tokens, view_.local.heads, view_.model.query_head_dim(), view_.e}, "queries");
  const Count kv =
      rules_.equal_ulysses
          ? query
          : product({tokens, std::max(view_.local.kv_heads, c), view_.model.head_dim, view_.e}, "keys");
  const auto trade = [&](Count bytes, std::string_view why) {
    add_comm(schedule_, to,
             comm(Op::all_to_all, "cp", c, bytes, view_.layout.dtype, phase, "attention.core", why));
  };
  const bool backward = phase == Phase::backward;
  if (backward) {
    trade(query, "output gradient: sequence shards become head shards");
  } else {
    trade(query, "queries: sequence shards become head shards");
    trade(kv, "keys: sequence shards become head shards");
    trade(kv, "values: sequence shards become head shards");
  }
  core_kernel(to, phase, view_.layout.seq, view_.layout.seq, view_.local.heads / c);
  if (backward) {
    trade(query, "query gradient: head shards become sequence shards");
    trade(kv, "key gradient: head shards become sequence shards");
    trade(kv, "value gradient: head shards become sequence shards");
  } else {
    trade(query, "output: head shards become sequence shards");
  }
}

// Every rank gathers all keys and values; they are not kept, so the backward pass gathers again.
void LayerWriter::gathered(BlockId to, Phase phase) const {
  const Count c = view_.layout.cp,
              whole = product({view_.layout.micro_batch, view_.layout.seq, view_.local.kv_heads, view_.e},
                              "keys");
  const Count keys = product({whole, view_.model.query_head_dim()}, "keys"),
              values = product({whole, view_.model.value_head_dim()}, "values");
  const auto collect = [&](Op op, Count bytes, std::string_view why) {
    add_comm(schedule_, to, comm(op, "cp", c, bytes, view_.layout.dtype, phase, "attention.core", why));
  };
  collect(Op::all_gather, keys, "keys of the whole sequence");
  collect(Op::all_gather, values, "values of the whole sequence");
  core_kernel(to, phase, view_.sequence, view_.layout.seq, view_.local.heads);
  if (phase != Phase::backward) return;
  collect(Op::reduce_scatter, keys, "key gradients return to their owners");
  collect(Op::reduce_scatter, values, "value gradients return to their owners");
}

}  // namespace medley::plan
