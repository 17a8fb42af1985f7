// The volumes that papers print: DP 2Ψe, ZeRO-3 3Ψe, TP 8bshe(t−1)/t per layer, … without what only an
// implementation needs.
#include "plan/frameworks.hpp"

namespace medley::plan {
namespace {

class Textbook {
 public:
  Textbook(const Model& m, const Layout& l, Count rank)
      : view_(m, l, rank, {.fuse_qkv = true}), body_(view_, schedule_, rules(l)) {}

  Schedule make() {
    if (view_.layout.mode != Mode::train) return infer();
    write_pipeline(view_, schedule_, 0, {.batched = false, .shape_exchange = false, .overlap = false},
                   [&](const Pass& pass) {
                     const bool first = view_.layout.zero == 3 && pass.micro_batch == 0;
                     BodyHooks hooks;
                     if (first) hooks.at_start = [&](int chunk, bool forward) { return gather(chunk, forward); };
                     return body_.block(pass.chunk, pass.forward, first ? 1 : 0, hooks);
                   });
    synchronise("dp", view_.dp_group, elements(view_.tensors(), false));
    synchronise("edp", view_.expert_dp_group, elements(view_.tensors(), true));
    update();
    return std::move(schedule_);
  }

 private:
  /// One forward pass per micro-batch; no gradients, no update.
  Schedule infer() {
    write_pipeline(view_, schedule_, 0, {.batched = false, .shape_exchange = false, .overlap = false},
                   [&](const Pass& pass) { return body_.block(pass.chunk, pass.forward, 0, {}); });
    return std::move(schedule_);
  }

  static TensorRules rules(const Layout& l) {
    TensorRules r;
    r.whole_model = r.expert_tensor = r.routing_traffic = false;
    r.equal_ulysses = true;
    r.reduce_dtype = l.dtype;
    return r;
  }

  // ZeRO-3 holds a slice of every parameter: whole parameters are gathered for the forward pass and again for
  // the backward pass.
  std::vector<Entry> gather(int chunk, bool forward) const {
    std::vector<Entry> out;
    for (const bool expert : {false, true}) {
      const Count group = expert ? view_.expert_dp_group : view_.dp_group;
      const Count bytes = product({elements(view_.tensors(chunk), expert), view_.e}, "parameters");
      if (group < 2 || bytes == 0) continue;
      out.push_back(comm(Op::all_gather, expert ? "edp" : "dp", group, bytes, view_.layout.dtype,
                         forward ? Phase::forward : Phase::backward, "parameters",
                         "ZeRO-3 parameters are whole only while used"));
    }
    return out;
  }

  void synchronise(std::string_view group, Count size, Count parameters) {
    const DType grad = view_.layout.grad_dtype.value_or(view_.layout.dtype);
    const Count gradient_bytes = product({parameters, static_cast<Count>(size_of(grad))}, "gradients");
    if (view_.layout.zero == 0) {
      add_comm(schedule_, 0,
               comm(Op::all_reduce, group, size, gradient_bytes, grad, Phase::grad_sync, "gradients",
                    "replicas average their gradients"));
      return;
    }
    add_comm(schedule_, 0,
             comm(Op::reduce_scatter, group, size, gradient_bytes, grad, Phase::grad_sync, "gradients",
                  "each replica averages its slice of the gradients"));
    if (view_.layout.zero == 3) return;
    add_comm(schedule_, 0,
             comm(Op::all_gather, group, size, product({parameters, view_.e}), view_.layout.dtype, Phase::optimizer,
                  "parameters", "updated slices become whole parameters"));
  }

  void update() {
    const Count share = view_.layout.zero > 0 ? view_.dp_group : 1;
    const Count all = sum(elements(view_.tensors(), false), elements(view_.tensors(), true));
    schedule_.add(0, memory_bound(product({ceil_div(all, share), adam_bytes_per_parameter}), Phase::optimizer, "adam"));
  }

  View view_;
  Schedule schedule_;
  Body body_;
};

}  // namespace

Schedule textbook_schedule(const Model& m, const Layout& l, Count rank) { return Textbook(m, l, rank).make(); }

}  // namespace medley::plan
