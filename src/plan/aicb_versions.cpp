// AICB's own formulas (aliyun/aicb, workload_generator): the published lists come from its first version, and
// the code has changed since. Each alternative says why it is not what the framework issues.
#include <fmt/format.h>

#include "plan/aicb.hpp"
#include "plan/view.hpp"

namespace medley::plan {
namespace {

using Versions = std::vector<AicbVersion>;

class Mock {
 public:
  Mock(const Model& m, const Layout& l, Framework f, Count rank)
      : m_(m), l_(l), f_(f), view_(m, l, rank, {.pad_vocabulary = f == Framework::megatron}) {}

  Versions versions(const std::string& purpose) const {
    return f_ == Framework::megatron ? megatron(purpose) : deepspeed(purpose);
  }

 private:
  Count plane() const { return product({l_.micro_batch, l_.seq, m_.hidden, 2}, "activation"); }
  Count steps() const { return view_.micro_batches; }
  static void put(Side& side, Op op, const char* group, Count bytes, Count count) {
    if (bytes > 0 && count > 0) side[{op, group, bytes}] += count;
  }
  static Side one(Op op, const char* group, Count bytes, Count count) {
    Side side;
    put(side, op, group, bytes, count);
    return side;
  }

  Versions megatron(const std::string& p) const {
    const Count m = steps(), tp = l_.tp > 1 ? 1 : 0;
    const bool piped = l_.pp > 1;
    if (p == "data") {
      Side side;
      put(side, Op::broadcast, "tp", 40, m);
      put(side, Op::broadcast, "tp", product({8, sum(l_.world(), product({l_.seq, l_.micro_batch}))}), m);
      return {{side,
               "AICB follows the older broadcast_data: sizes (40 B), then one tensor of 8·(world + b·s) "
               "bytes, on every stage; Megatron now broadcasts tokens, labels, loss mask and positions one "
               "by one where they are needed"}};
    }
    if (p == "embedding forward")
      return {{one(Op::all_reduce, "tp", plane(), m * tp),
               l_.sp ? "AICB keeps all_reduce for the embedding under sequence parallelism, on every stage; "
                       "Megatron uses reduce_scatter on the first"
                     : "AICB puts an embedding on every pipeline stage"}};
    if (p == "embedding backward")
      return {{one(Op::all_reduce, "tp", plane(), m * tp),
               "AICB adds an all_reduce to the embedding's backward pass; the reduction is an identity "
               "backwards (under sequence parallelism an all_gather)"}};
    if (p == "head forward" || p == "head backward") return {{Side{}, "AICB leaves the output head out of its passes"}};
    if (p == "tied embedding")
      return {{Side{},
               "AICB makes the shared embeddings equal at setup only; Megatron all_reduces their gradients "
               "every step"}};
    if (p == "loss" && !piped && l_.tp == 1) {
      return {{one(Op::all_reduce, "tp", product({l_.micro_batch, l_.seq, 4}), 3 * m),
               "AICB lists the reductions of a vocabulary-parallel loss for a tensor group of one, too"}};
    }
    if (p == "loss" && piped) return {{Side{}, "AICB's pipeline passes leave out the vocabulary-parallel loss"}};
    if (p == "log") {
      Versions out = {{one(Op::all_reduce, "dp", 4, m),
                       "AICB averages a 4-byte loss in every micro-batch; Megatron reduces loss and token "
                       "count (8 B) once per step"}};
      if (piped) out.push_back({Side{}, "AICB's pipeline passes leave out the averaged loss"});
      return out;
    }
    if (p == "layers forward" || p == "layers backward") return layers(p == "layers forward");
    if (p == "experts forward") return experts();
    if (p == "experts backward") return {{Side{}, "AICB builds the rows of the experts' backward pass and drops them"}};
    if (p == "pipeline") return pipeline();
    if (p == "norm gradients") {
      Versions out = {{one(Op::all_reduce, "tp", l_.sp ? product({2, 4, m_.hidden, m_.layers}) / l_.pp : 0, 1),
                       "AICB counts 2 bytes per gradient and the norms of layers only; Megatron reduces f32 "
                       "gradients of all norms and row-parallel biases"}};
      if (piped) out.push_back({Side{}, "AICB's pipeline lists have 0 bytes for norm gradients"});
      return out;
    }
    if (p == "gradient norm") {
      Versions out;
      for (Count times = 1; times <= (piped ? 2 : 1); ++times)
        out.push_back({one(Op::all_reduce, "tp", 4, times),
                       "AICB's 4-byte NaN check over tp stands where Megatron reduces the gradient norm over "
                       "the model's (distributed optimizer: all) ranks"});
      if (piped) out.push_back({Side{}, "AICB's pipeline lists end before the optimizer step"});
      return out;
    }
    if (p == "gradients" || p == "updated parameters") return synchronisation(p == "gradients");
    return {};
  }

  Versions layers(bool forward) const {
    const bool dense = !m_.moe();
    Versions out;
    for (const bool divided : {true, false}) {
      const Count regions = product({divided ? m_.layers / l_.pp : m_.layers, dense ? 2 : 1, steps()});
      Side side;
      if (l_.tp > 1 && l_.sp) {
        put(side, Op::all_gather, "tp", plane(), forward ? regions : 2 * regions);
        put(side, Op::reduce_scatter, "tp", plane(), regions);
      } else if (l_.tp > 1) {
        put(side, Op::all_reduce, "tp", plane(), regions);
      }
      out.push_back({side, divided ? "AICB counts the regions of every layer alike"
                                   : "AICB's first version runs all layers on every pipeline stage"});
    }
    return out;
  }

  Versions experts() const {
    const Count times = product({m_.layers / l_.pp, steps()}),
                wide = product({l_.seq, m_.hidden, l_.micro_batch, m_.top_k});
    Side side;
    if (l_.tp > 1 || l_.ep > 1) put(side, Op::all_gather, "ep", product({2, l_.ep, m_.experts, l_.tp}), times);
    if (l_.ep > 1) put(side, Op::all_to_all, "ep", wide / l_.tp * 2, 2 * times);
    if (l_.tp > 1) put(side, Op::all_gather, "tp", 2 * wide, times);
    if (l_.tp > 1) put(side, Op::reduce_scatter, "tp", 2 * wide, times);
    Side quantised;  // its DeepSeek: tokens leave in fp8 with an f32 scale per 128 elements, and return in
                     // bf16
    const Count routed = product({m_.moe_layers() / l_.pp, steps()});
    put(quantised, Op::all_to_all, "ep", wide / l_.tp * 2 * 33 / 64, routed);
    put(quantised, Op::all_to_all, "ep", wide / l_.tp * 2, routed);
    return {{side,
             "AICB counts token counts as 2 bytes on the ep group and leaves out the routing probabilities, "
             "with experts in every layer"},
            {quantised,
             "AICB's DeepSeek dispatches tokens in fp8 with scales and exchanges neither counts nor "
             "probabilities"}};
  }

  Versions pipeline() const {
    const bool first = view_.first_stage(), last = view_.last_stage();
    Side side;
    const Count links = (first ? 0 : 1) + (last ? 0 : 1);
    put(side, Op::send, "pp", plane(), steps() * links);
    put(side, Op::recv, "pp", plane(), steps() * links);
    return {{side, "AICB sends whole activations between stages; with sequence parallelism Megatron sends 1/t"}};
  }

  // Parameters as AICB counts them. The first version has a plain GPT block; the current one makes the
  // embedding four times as large and counts an untied head, three norm vectors per layer and no final norm.
  Count parameters(bool current, bool biases) const {
    const Count h = m_.hidden, t = l_.tp, v = view_.model.vocab / t, layers = current ? m_.layers / l_.pp : m_.layers;
    const Count attention = product({4, h, h}) / t,
                mlp = m_.moe() ? product({2, h, m_.moe_ffn, m_.experts / l_.ep}) / t : product({2, h, m_.ffn}) / t;
    const Count bias = biases ? 3 * h / t + 2 * h + (m_.moe() ? -h : m_.ffn / t) : 0;
    const Count layer = sum(sum(attention, mlp), bias + (current ? 3 : 4) * h);
    Count total = sum(product({layer, layers}), product({l_.seq, h}));
    total = sum(total, product({current ? 5 : 1, v, h}));
    return current ? total + (biases ? v : 0) : total + 2 * h;
  }

  Versions synchronisation(bool gradients) const {
    const Count wide = gradients ? 4 : 2;
    const bool sharded = l_.zero >= 1;
    if (!gradients && !sharded) return {};
    const Op op = !gradients ? Op::all_gather : sharded ? Op::reduce_scatter : Op::all_reduce;
    Versions out;
    const Count exact = sum(elements(view_.tensors(), false), elements(view_.tensors(), true));
    for (Count times = 1; times <= (l_.pp > 1 ? 2 : 1); ++times) {
      const std::string twice = times == 2 ? "; its pipeline path runs the step twice" : "";
      out.push_back({one(op, "dp", product({exact, wide}), times),
                     "Megatron pads buckets of the distributed optimizer to lcm(d, 128) and reduces experts "
                     "in their own group; AICB does neither" +
                         twice});
      out.push_back({one(op, "dp", product({parameters(false, true), wide}) / l_.pp, times),
                     "AICB counts a plain GPT whatever the model: two MLP matrices, biases, learned "
                     "positions, tied head" +
                         twice});
      for (const bool biases : {false, true}) {
        out.push_back({one(op, "dp", product({parameters(true, biases), wide}) / l_.pp, times),
                       "AICB counts the word embedding four times, an untied head, three norm vectors a "
                       "layer, no final norm, and divides a stage's parameters by pp once more" +
                           twice});
      }
    }
    if (l_.pp > 1) out.push_back({Side{}, "AICB's pipeline lists end before the optimizer step"});
    return out;
  }

  // ---- DeepSpeed
  std::vector<Count> sizes() const {
    std::vector<Count> out;
    for (const LocalTensor& t : view_.tensors()) out.push_back(t.elements);
    return out;
  }

  Versions deepspeed(const std::string& p) const {
    if (p == "gradient norm" && l_.zero < 3) {
      return {{Side{}, "AICB leaves out the norm of the gradients"},
              {one(Op::all_reduce, "dp", 8, 1), "AICB counts the gradient norm as 8 bytes; DeepSpeed reduces one f32"}};
    }
    if (p == "gradients") return {carried(l_.zero == 3 ? Op::reduce_scatter : Op::all_reduce)};
    if (p == "fetch forward" || p == "fetch backward") {
      Side side;
      for (const Count n : sizes()) put(side, Op::all_gather, "dp", 2 * n, 1);
      return {{side,
               "AICB lists the first step, before there is a trace to prefetch by: every parameter is "
               "gathered alone, persistent ones too"}};
    }
    if (p == "updated parameters") return {l_.zero == 3 ? persistent() : sharded_gather()};
    return {};
  }

  AicbVersion carried(Op op) const {
    Side side;
    const auto all = sizes();
    Count open = 0;
    for (Count step = 0; step < steps(); ++step) {
      for (auto n = all.rbegin(); n != all.rend(); ++n) {
        if (sum(open, *n) > l_.flags.reduce_bucket_elements) {
          put(side, op, "dp", 2 * open, 1);
          open = 0;
        }
        open += *n;
      }
    }
    put(side, op, "dp", 2 * open, 1);
    return {side,
            "AICB reduces in every micro-batch and carries an open bucket over to the next; DeepSpeed closes "
            "it (stage 1: reduces at the boundary only)"};
  }

  AicbVersion sharded_gather() const {
    const Count total = elements(view_.tensors(), false),
                shards = std::max<Count>(1, total / std::max<Count>(1, l_.flags.allgather_bucket_elements)),
                shard = total / shards;
    Side side;
    for (Count i = 0; i < shards; ++i)
      put(side, Op::all_gather, "dp", 2 * round_up(i == shards - 1 ? total - i * shard : shard, view_.dp_group), 1);
    return {side,
            "AICB gathers updated parameters in shards of allgather_bucket_size; DeepSpeed now uses one "
            "all_gather_into_tensor per parameter group"};
  }

  AicbVersion persistent() const {
    Side side;
    for (const Count n : sizes()) {
      if (n <= l_.flags.persistence_elements) put(side, Op::all_gather, "dp", 2 * n, 1);
    }
    return {side, "AICB gathers persistent parameters as they are; DeepSpeed gathers each padded to the group"};
  }

  const Model& m_;
  const Layout& l_;
  Framework f_;
  View view_;
};

}  // namespace

std::vector<AicbVersion> aicb_versions(const Model& m, const Layout& l, Framework f, Count rank,
                                       const std::string& purpose) {
  return Mock(m, l, f, rank).versions(purpose);
}

}  // namespace medley::plan
