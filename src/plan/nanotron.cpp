// Hugging Face's nanotron: Megatron's tensor parallel layers with asynchronous gathers, 1F1B with blocking
// messages, gradients accumulated in f32 and reduced in DDP's buckets during the last backward pass, ZeRO-1.
#include <fmt/format.h>

#include "plan/frameworks.hpp"

namespace medley::plan {
namespace {

class Nanotron {
 public:
  Nanotron(const Model& m, const Layout& l, Count rank)
      : view_(m, l, rank, {.fuse_projections = true, .uneven = ViewOptions::Uneven::by_parameters}),
        sharded_(l.zero == 1),
        grad_(l.grad_dtype.value_or(DType::f32)),
        body_(view_, schedule_, rules(l)) {
    if (l.zero > 1) refuse(Framework::nanotron, fmt::format("zero is {}; it has ZeRO-1 only", l.zero));
    if (l.virtual_stages > 1) refuse(Framework::nanotron, "its pipeline has no virtual stages; leave vp out");
    if (l.cp > 1) refuse(Framework::nanotron, "cp above 1 is not part of it; use megatron or fsdp2");
    if (l.tp > 1 && m.kv_heads % l.tp != 0)
      refuse(Framework::nanotron,
             fmt::format("{} key-value heads are not divisible by tp {}", m.kv_heads, l.tp));
  }

  Schedule make() {
    const Count wide = static_cast<Count>(size_of(grad_));
    buckets_ = fill_buckets(view_.tensors(), false, view_.layout.flags.bucket_bytes / wide,
                            view_.layout.flags.bucket_bytes / wide);
    write_pipeline(view_, schedule_, 0, {.batched = false, .shape_exchange = true, .overlap = false},
                   [&](const Pass& pass) { return pass_block(pass); });
    step();
    return std::move(schedule_);
  }

 private:
  static TensorRules rules(const Layout& l) {
    TensorRules r;
    r.regather = r.async_backward = l.sp;
    r.reduce_dtype = l.dtype;
    return r;
  }

  Schedule::BlockId pass_block(const Pass& pass) {
    // Without ZeRO its pipeline engine leaves DDP's hooks on: gradients are reduced after every micro-batch.
    const bool always = view_.layout.pp > 1 && !sharded_;
    const bool last =
        !pass.forward && (always || pass.micro_batch == view_.micro_batches - 1) && view_.dp_group > 1;
    BodyHooks hooks;
    if (last) hooks.after = [&](Count layer, bool) { return reductions(layer); };
    if (!pass.forward)
      hooks.at_end = [&, last](int, bool) {
        std::vector<Entry> out{accumulation()};
        if (last) out.push_back(wait_for(token::gradients, Phase::backward));
        return out;
      };
    return body_.block(pass.chunk, pass.forward, last ? 1 : 0, hooks);
  }

  // The 16-bit gradient of every parameter is added to its f32 sum after each micro-batch: 2 + 4 + 4 bytes.
  Entry accumulation() const {
    Entry entry = memory_bound(product({elements(view_.tensors(), false), 10}, "gradients"), Phase::backward,
                               "gradients");
    entry.kernels = static_cast<int>(view_.tensors().size());
    return entry;
  }

  std::vector<Entry> reductions(Count layer) const {
    std::vector<Entry> out;
    for (const Bucket& b : buckets_) {
      if (b.last_layer != layer) continue;
      out.push_back(async(comm(sharded_ ? Op::reduce_scatter : Op::all_reduce, "dp", view_.dp_group,
                               product({b.elements, static_cast<Count>(size_of(grad_))}, "gradients"), grad_,
                               Phase::backward, "gradients", "a full gradient bucket is averaged in f32"),
                          token::gradients));
    }
    return out;
  }

  void step() {
    const Count all = elements(view_.tensors(), false);
    if (view_.model.tied_embeddings && view_.layout.pp > 1 && (view_.first_stage() || view_.last_stage()))
      add_comm(schedule_, 0,
               comm(Op::all_reduce, "embedding", 2,
                    product({view_.local.vocab, view_.model.hidden, static_cast<Count>(size_of(grad_))},
                            "embedding"),
                    grad_, Phase::grad_sync, "embedding", "first and last stage share the embedding"));
    if (view_.layout.flags.gradient_clipping) {
      Entry norm = comm(Op::all_reduce, "model", view_.model_group, 4, DType::f32, Phase::optimizer,
                        "scalars", "norm of all gradients");
      norm.purpose = Purpose::gradient_norm;
      add_comm(schedule_, 0, std::move(norm));
    }
    const Count owned = ceil_div(all, sharded_ ? view_.dp_group : 1);
    schedule_.add(0, memory_bound(product({owned, adam_bytes_per_parameter}), Phase::optimizer, "adam"));
    if (sharded_)
      add_comm(schedule_, 0,
               comm(Op::all_gather, "dp", view_.dp_group, product({all, view_.e}, "parameters"),
                    view_.layout.dtype, Phase::optimizer, "parameters",
                    "ZeRO-1: updated slices become whole parameters"));
    Entry loss = comm(Op::all_reduce, "dp", view_.dp_group, 4, DType::f32, Phase::optimizer, "scalars",
                      "loss averaged over replicas");
    loss.purpose = Purpose::loss;
    if (view_.last_stage()) add_comm(schedule_, 0, std::move(loss));
  }

  View view_;
  bool sharded_;
  DType grad_;
  Schedule schedule_;
  Body body_;
  std::vector<Bucket> buckets_;
};

}  // namespace

Schedule nanotron_schedule(const Model& m, const Layout& l, Count rank) {
  return Nanotron(m, l, rank).make();
}

}  // namespace medley::plan
