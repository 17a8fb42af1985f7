// PyTorch's sharded data parallelism, FSDP2 (fully_shard) and FSDP1 (FullyShardedDataParallel): one
// all_gather and one reduce_scatter per layer and micro-batch, the root once.
#include <fmt/format.h>

#include <algorithm>

#include "plan/frameworks.hpp"

namespace medley::plan {
namespace {

class Fsdp {
 public:
  Fsdp(const Model& m, const Layout& l, Count rank, Framework framework)
      : framework_(framework),
        view_(m, l, rank),
        body_(view_, schedule_, rules(l)),
        shard_(view_.dp_group / l.hsdp),
        grad_(l.grad_dtype.value_or(l.dtype)) {
    if (framework == Framework::fsdp1 && (l.tp > 1 || l.pp > 1 || l.cp > 1))
      refuse(framework, "it knows data parallelism only; tensor, pipeline and context parallelism come with fsdp2");
    if (l.ep > 1) refuse(framework, "ep above 1 is not part of it; use megatron or deepspeed");
    // zero=2 is SHARD_GRAD_OP, or reshard_after_forward=False: parameters stay whole until the end of the
    // backward pass.
    if (l.zero == 1) refuse(framework, "zero is 1; it shards gradients too (zero=2) or everything (zero=3)");
    keeps_ = zero_stage(l, framework) == 2;
  }

  Schedule make() {
    write_pipeline(
        view_, schedule_, 0, {.batched = true, .shape_exchange = false, .overlap = false}, [&](const Pass& pass) {
          BodyHooks hooks;
          hooks.at_start = [&](int chunk, bool forward) { return start(chunk, forward); };
          hooks.before = [&, chunk = pass.chunk](Count layer, bool forward) {
            return gather_next(chunk, layer, forward);
          };
          hooks.after = [&](Count layer, bool forward) { return forward ? std::vector<Entry>{} : reduce(layer); };
          hooks.at_end = [&](int chunk, bool forward) { return forward ? std::vector<Entry>{} : root_reduce(chunk); };
          return body_.block(pass.chunk, pass.forward, 0, hooks);
        });
    step();
    return std::move(schedule_);
  }

 private:
  // Tensor parallelism comes from DTensor: gathered inputs are kept for the backward pass, nothing is
  // asynchronous.
  static TensorRules rules(const Layout& l) {
    TensorRules r;
    r.reduce_dtype = l.dtype;
    r.overlap_forward = l.flags.tp_comm_overlap;  // asynchronous tensor parallelism (torchtitan's async_tp)
    r.loss_order = TensorRules::LossOrder::dtensor;
    r.shard_loss = l.flags.loss_parallel;
    return r;
  }

  std::string_view shard_group() const { return view_.layout.hsdp > 1 ? "fsdp" : "dp"; }
  bool apart(Count layer) const {
    return view_.layout.flags.shard_embeddings_apart || (layer >= 0 && layer < view_.model.layers);
  }

  // Every tensor is split along dimension 0 and padded there, so a small tensor is sent as at least `shard`
  // rows.
  Count padded(const std::vector<Tensor>& tensors) const {
    Count total = 0;
    if (framework_ == Framework::fsdp1) {  // one flat parameter per unit, padded as a whole
      for (const Tensor& t : tensors) total = sum(total, t.tied ? 0 : t.elements(), "parameters");
      return round_up(total, shard_);
    }
    for (const Tensor& t : tensors) {
      if (!t.tied || view_.layout.pp > 1)
        total = sum(total, product({round_up(t.rows, shard_), t.columns, t.copies}, "parameters"), "parameters");
    }
    return total;
  }
  const std::vector<Tensor>& tensors(Count layer) const {
    return layer < 0 ? view_.embedding : layer >= view_.model.layers ? view_.head : view_.layer(layer);
  }
  Count root(int chunk) const {
    const Chunk& c = view_.chunks[static_cast<std::size_t>(chunk)];
    Count total = 0;
    if (c.embedding && !apart(-1)) total = padded(view_.embedding);
    if (c.head && !apart(view_.model.layers)) total = sum(total, padded(view_.head));
    return total;
  }

  Entry all_gather(Count elements, Phase phase, std::string_view why, bool hidden) const {
    Entry entry = comm(Op::all_gather, shard_group(), shard_, product({elements, view_.e}, "parameters"),
                       view_.layout.dtype, phase, "parameters", why);
    return hidden ? async(std::move(entry), token::parameters) : entry;
  }
  // FSDP2 copies what it gathered from the buffer of the collective into the parameters. FSDP1 gathers into
  // the flat parameter itself.
  void copy_out(std::vector<Entry>& out, Count elements, Phase phase) const {
    if (framework_ == Framework::fsdp2 && shard_ > 1)
      out.push_back(memory_bound(product({elements, 2, view_.e}, "parameters"), phase, "parameters.copy"));
  }
  // FSDP2 copies all gradients into the buffer of the collective. In FSDP1, autograd concatenates the
  // gradients of the flat parameter's views, and another kernel divides them before they are added.
  void copy_in(std::vector<Entry>& out, Count elements) const {
    const Count bytes = framework_ == Framework::fsdp1 ? 4 * view_.e : view_.e + static_cast<Count>(size_of(grad_));
    if (shard_ > 1 && elements > 0)
      out.push_back(memory_bound(product({elements, bytes}, "gradients"), Phase::backward, "gradients.copy"));
  }
  void reduce_scatter(std::vector<Entry>& out, Count elements) const {
    const Count wide = static_cast<Count>(size_of(grad_)), bytes = product({elements, wide}, "gradients");
    copy_in(out, elements);
    if (shard_ > 1 && bytes > 0) {
      out.push_back(async(comm(Op::reduce_scatter, shard_group(), shard_, bytes, grad_, Phase::backward, "gradients",
                               "each rank averages its slice of the group's gradients"),
                          token::gradients));
    }
    if (view_.layout.hsdp > 1 && bytes > 0) {
      out.push_back(async(comm(Op::all_reduce, "hsdp", view_.layout.hsdp, ceil_div(bytes, shard_), grad_,
                               Phase::backward, "gradients", "replicas of the shard group average their slices"),
                          token::gradients));
    }
  }

  // Groups of a chunk in the order of a pass; the root is separate. In backward the head is still whole.
  const std::vector<Count>& groups(int chunk, bool forward) const {
    const auto [at, fresh] = groups_.try_emplace({chunk, forward});
    if (fresh) at->second = list_groups(chunk, forward);
    return at->second;
  }
  std::vector<Count> list_groups(int chunk, bool forward) const {
    const Chunk& c = view_.chunks[static_cast<std::size_t>(chunk)];
    std::vector<Count> order;
    if (!forward && keeps_) return order;
    if (c.embedding && apart(-1)) order.push_back(-1);
    for (Count i = 0; i < c.count; ++i) order.push_back(c.first + i);
    if (forward && c.head && apart(view_.model.layers)) order.push_back(view_.model.layers);
    if (!forward) std::reverse(order.begin(), order.end());
    return order;
  }
  Entry group_gather(Count layer, bool forward, bool first) const {
    Entry entry = all_gather(padded(tensors(layer)), forward ? Phase::forward : Phase::backward,
                             forward ? "parameters of one group, gathered behind the group before"
                                     : "freed after the forward pass, gathered again behind the group before",
                             true);
    entry.exposed = first;  // nothing runs yet that could hide it
    return entry;
  }

  std::vector<Entry> start(int chunk, bool forward) const {
    std::vector<Entry> out;
    if (shard_ < 2) return out;
    if (forward && root(chunk) > 0)
      out.push_back(
          all_gather(root(chunk), Phase::forward, "root group (embedding, norm, head): gathered once and kept", false));
    if (forward && root(chunk) > 0) copy_out(out, root(chunk), Phase::forward);
    const auto& order = groups(chunk, forward);
    if (!order.empty()) out.push_back(group_gather(order.front(), forward, forward));
    return out;
  }
  // A group waits for its own parameters and issues the gather of the next group, which overlaps its
  // computation.
  std::vector<Entry> gather_next(int chunk, Count layer, bool forward) const {
    const auto& order = groups(chunk, forward);
    const auto here = std::find(order.begin(), order.end(), layer);
    if (shard_ < 2 || here == order.end()) return {};
    const Phase phase = forward ? Phase::forward : Phase::backward;
    std::vector<Entry> out{wait_for(token::parameters, phase)};
    copy_out(out, padded(tensors(layer)), phase);
    if (here + 1 != order.end()) out.push_back(group_gather(*(here + 1), forward, false));
    return out;
  }
  std::vector<Entry> reduce(Count layer) const {
    std::vector<Entry> out;
    if (apart(layer)) reduce_scatter(out, padded(tensors(layer)));
    return out;
  }
  std::vector<Entry> root_reduce(int chunk) const {
    std::vector<Entry> out;
    if (root(chunk) > 0) reduce_scatter(out, root(chunk));
    out.push_back(wait_for(token::gradients, Phase::backward));
    return out;
  }

  void step() {
    const Count all = sum(elements(view_.tensors(), false), elements(view_.tensors(), true));
    if (view_.layout.flags.gradient_clipping) {
      for (const auto& [name, size] :
           {std::pair<std::string_view, Count>{"dp", view_.dp_group}, {"pp", view_.layout.pp}}) {
        Entry entry =
            comm(Op::all_reduce, name, size, 4, DType::f32, Phase::optimizer, "scalars", "norm of all gradients");
        entry.purpose = Purpose::gradient_norm;
        add_comm(schedule_, 0, std::move(entry));
      }
    }
    schedule_.add(0,
                  memory_bound(product({ceil_div(all, shard_), adam_bytes_per_parameter}), Phase::optimizer, "adam"));
  }

  Framework framework_;
  View view_;
  Schedule schedule_;
  Body body_;
  Count shard_;
  DType grad_;
  bool keeps_ = false;
  mutable std::map<std::pair<int, bool>, std::vector<Count>> groups_;
};

}  // namespace

Schedule fsdp2_schedule(const Model& m, const Layout& l, Count rank) {
  return Fsdp(m, l, rank, Framework::fsdp2).make();
}

Schedule fsdp1_schedule(const Model& m, const Layout& l, Count rank) {
  return Fsdp(m, l, rank, Framework::fsdp1).make();
}

}  // namespace medley::plan
