// Hugging Face's nanotron: Megatron's tensor parallel layers with asynchronous gathers, 1F1B with blocking
// messages, gradients accumulated in f32. Without ZeRO, DDP's hooks reduce them in buckets during the last
// backward pass; with ZeRO-1 there is no DDP: one blocking all_reduce of the whole buffer follows the last
// pass (trainer.py, `make_ddp` and `sync_gradients_across_dp`).
#include <fmt/format.h>

#include "plan/frameworks.hpp"

namespace medley::plan {
namespace {

class Nanotron {
 public:
  Nanotron(const Model& m, const Layout& l, Count rank)
      : view_(m, l, rank, {.fuse_projections = true, .uneven = ViewOptions::Uneven::by_cost}),
        sharded_(l.zero == 1),
        grad_(l.grad_dtype.value_or(DType::f32)),
        body_(view_, schedule_, rules(l)) {
    if (l.zero > 1) refuse(Framework::nanotron, fmt::format("zero is {}; it has ZeRO-1 only", l.zero));
    if (l.virtual_stages > 1) refuse(Framework::nanotron, "its pipeline has no virtual stages; leave vp out");
    if (l.cp > 1) refuse(Framework::nanotron, "cp above 1 is not part of it; use megatron or fsdp2");
    if (l.tp > 1 && m.kv_heads % l.tp != 0)
      refuse(Framework::nanotron, fmt::format("{} key-value heads are not divisible by tp {}", m.kv_heads, l.tp));
  }

  Schedule make() {
    // DDP fills its buckets with 16-bit gradients; the hook adds each to its f32 sum, which is reduced. The
    // sums of a bucket are reduced by one all_reduce_coalesced.
    const Flags& flags = view_.layout.flags;
    buckets_ = fill_buckets(view_.tensors(), false, ceil_div(flags.first_bucket_bytes, view_.e),
                            ceil_div(flags.bucket_bytes, view_.e));
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
    // sharded_cross_entropy in f32, kernel by kernel: cast, maximum, subtraction, exponential, sum, division;
    // then the scaling of the gradient and its cast.
    r.loss_forward = {38, 6, 6};
    r.loss_backward = {14, 6, 2};
    return r;
  }

  Schedule::BlockId pass_block(const Pass& pass) {
    const bool reduces =
        !pass.forward && !sharded_ && view_.dp_group > 1 && pass.micro_batch == view_.micro_batches - 1;
    BodyHooks hooks;
    if (reduces) hooks.after = [&](Count layer, bool) { return reductions(layer); };
    if (!pass.forward)
      hooks.at_end = [&, reduces](int, bool) {
        std::vector<Entry> out{over_tensors(10, 1, Phase::backward, "gradients")};
        if (reduces) out.push_back(wait_for(token::gradients, Phase::backward));
        return out;
      };
    return body_.block(pass.chunk, pass.forward, reduces ? 1 : 0, hooks);
  }

  /// A loop over this rank's tensors that reads and writes `bytes` per element, in `kernels` kernels a
  /// tensor. The accumulation after each micro-batch adds 16-bit gradients to f32 sums: 2 + 4 + 4 bytes.
  Entry over_tensors(Count bytes, Count kernels, Phase phase, const char* module) const {
    const std::vector<LocalTensor> tensors = view_.tensors();
    Entry entry = memory_bound(product({elements(tensors, false), bytes}, module), phase, module);
    entry.kernels = static_cast<int>(product({static_cast<Count>(tensors.size()), kernels}, module));
    entry.loop = true;
    return entry;
  }

  std::vector<Entry> reductions(Count layer) const {
    std::vector<Entry> out;
    for (const Bucket& b : buckets_) {
      if (b.last_layer != layer) continue;
      out.push_back(async(comm(Op::all_reduce, "dp", view_.dp_group, gradient_bytes(b.elements), grad_, Phase::backward,
                               "gradients", "the f32 gradients of a full bucket are averaged at once"),
                          token::gradients));
    }
    return out;
  }

  Count gradient_bytes(Count elements) const {
    return product({elements, static_cast<Count>(size_of(grad_))}, "gradients");
  }

  void step() {
    const Count all = elements(view_.tensors(), false);
    if (sharded_)
      add_comm(schedule_, 0,
               comm(Op::all_reduce, "dp", view_.dp_group, gradient_bytes(all), grad_, Phase::grad_sync, "gradients",
                    "ZeRO-1: all gradients are averaged in f32 at once, after the last pass"));
    if (view_.model.tied_embeddings && view_.layout.pp > 1 && (view_.first_stage() || view_.last_stage()))
      add_comm(schedule_, 0,
               comm(Op::all_reduce, "embedding", 2,
                    gradient_bytes(product({view_.local.vocab, view_.model.hidden}, "embedding")), grad_,
                    Phase::grad_sync, "embedding", "first and last stage share the embedding"));
    if (view_.layout.flags.gradient_clipping) {
      schedule_.add(0, over_tensors(4, 1, Phase::optimizer, "gradient_norm"));
      Entry norm = comm(Op::all_reduce, "model", view_.model_group, 4, DType::f32, Phase::optimizer, "scalars",
                        "norm of all gradients");
      norm.purpose = Purpose::gradient_norm;
      add_comm(schedule_, 0, std::move(norm));
      schedule_.add(0, over_tensors(8, 1, Phase::optimizer, "gradient_clipping"));
    }
    const Count owned = ceil_div(all, sharded_ ? view_.dp_group : 1);
    schedule_.add(0, memory_bound(product({owned, adam_bytes_per_parameter}), Phase::optimizer, "adam"));
    schedule_.add(0, memory_bound(gradient_bytes(all), Phase::optimizer, "zero_gradients"));
    if (sharded_ && view_.dp_group > 1) gather_parameters(all);
    Entry loss = comm(Op::all_reduce, "dp", view_.dp_group, 4, DType::f32, Phase::optimizer, "scalars",
                      "loss averaged over replicas");
    loss.purpose = Purpose::loss;
    if (view_.last_stage()) add_comm(schedule_, 0, std::move(loss));
  }

  // all_gather_coalesced: the slices of every rank are flattened, gathered as a list of tensors, which
  // PyTorch gathers to one buffer and copies, and copied back tensor by tensor and rank by rank.
  void gather_parameters(Count all) {
    schedule_.add(0, memory_bound(product({all, 4 * view_.e}, "parameters"), Phase::optimizer, "flatten"));
    add_comm(schedule_, 0,
             comm(Op::all_gather, "dp", view_.dp_group, product({all, view_.e}, "parameters"), view_.layout.dtype,
                  Phase::optimizer, "parameters", "ZeRO-1: updated slices become whole parameters"));
    schedule_.add(0, over_tensors(2 * view_.e, view_.dp_group, Phase::optimizer, "unflatten"));
  }

  View view_;
  bool sharded_;
  DType grad_;
  Schedule schedule_;
  Body body_;
  std::vector<Bucket> buckets_;
};

}  // namespace

Schedule nanotron_schedule(const Model& m, const Layout& l, Count rank) { return Nanotron(m, l, rank).make(); }

}  // namespace medley::plan
