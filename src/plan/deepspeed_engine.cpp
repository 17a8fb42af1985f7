#include "plan/deepspeed_engine.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace medley::plan {
namespace {

class Engine {
 public:
  Engine(const Model& m, const Layout& l, Count rank, const EngineRules& rules)
      : rules_(rules),
        view_(m, l, rank, rules.view),
        flags_(view_.layout.flags),
        grad_(l.grad_dtype.value_or(l.dtype)),
        wide_(static_cast<Count>(size_of(grad_))),
        zero_(l.zero),
        overlap_(flags_.overlap_comm.value_or(l.zero == 3)),
        body_(view_, schedule_, rules.tensor) {
    if (l.virtual_stages > 1) refuse(rules.framework, "its pipeline has no virtual stages; leave vp out");
    if (l.pp > 1 && l.pipeline == PipelineKind::gpipe)
      refuse(rules.framework, "its pipeline is 1F1B; leave schedule=gpipe out");
    if (l.pp > 1 && l.zero > 1)
      refuse(rules.framework, fmt::format("zero is {}; with pp only zero 0 and 1 work", l.zero));
    if (l.cp > 1 && l.context != ContextKind::ulysses)
      refuse(rules.framework, "its context parallelism is Ulysses; use cp_kind=ulysses");
    if (l.hsdp > 1) refuse(rules.framework, "hsdp belongs to fsdp2");
  }

  Schedule make() {
    for (const bool expert : {false, true}) {
      flushes_[expert] = reduce_flushes(view_.tensors(), expert, flags_.reduce_bucket_elements);
      if (zero_ == 3) fetches_[expert] = plan_fetches(view_.tensors(), expert, flags_, group(expert));
    }
    if (view_.layout.pp > 1) pipeline();
    else
      write_pipeline(view_, schedule_, 0, {}, [&](const Pass& pass) {
        return pass_block(pass.forward, pass.micro_batch == view_.micro_batches - 1);
      });
    if (zero_ == 0 || (zero_ == 1 && !boundary_overlap())) boundary_reduction();
    step();
    return std::move(schedule_);
  }

 private:
  Count group(bool expert) const { return expert ? view_.expert_dp_group : view_.dp_group; }
  static std::string_view group_name(bool expert) { return expert ? "edp" : "dp"; }

  /// ZeRO-1 reduces at the accumulation boundary: with overlap_comm its buckets are reduced during the last
  /// backward pass.
  bool boundary_overlap() const { return zero_ == 1 && overlap_ && view_.layout.pp == 1; }

  Schedule::BlockId pass_block(bool forward, bool last_micro_batch = false) {
    const bool reduces = !forward && (zero_ >= 2 || (boundary_overlap() && last_micro_batch));
    BodyHooks hooks;
    hooks.at_start = [&](int, bool f) { return start_of_pass(f); };
    if (zero_ == 3) hooks.before = [&](Count layer, bool f) { return fetch(layer, f); };
    if (reduces) hooks.after = [&](Count layer, bool) { return flush(layer); };
    if (reduces && overlap_)
      hooks.at_end = [&](int, bool) { return std::vector<Entry>{wait_for(token::gradients, Phase::backward)}; };
    return body_.block(0, forward, reduces && zero_ == 1 ? 1 : 0, hooks);
  }

  std::vector<Entry> start_of_pass(bool forward) const {
    std::vector<Entry> out;
    const Layout& l = view_.layout;
    const auto over_tp = [&](Op op, Count bytes, DType dtype, std::string_view module, std::string_view why) {
      if (l.tp > 1)
        out.push_back(
            comm(op, "tp", l.tp, bytes, dtype, forward ? Phase::forward : Phase::backward, std::string(module), why));
    };
    if (forward && rules_.broadcasts_data && (view_.first_stage() || view_.last_stage())) {
      over_tp(Op::broadcast, 40, DType::i64, "data", "sizes of the batch that tensor rank 0 read");
      over_tp(Op::broadcast, product({l.micro_batch, sum(l.seq, 1), 8}, "tokens"), DType::i64, "data",
              "tokens, read by tensor rank 0");
    }
    if (!partitioned()) return out;
    if (forward && !view_.first_stage())
      over_tp(Op::all_gather, view_.activation_bytes(), l.dtype, "pipeline",
              "the partitioned activation from the stage before is made whole");
    if (!forward && !view_.last_stage()) {
      over_tp(Op::all_gather, view_.activation_bytes(), l.dtype, "pipeline",
              "the partitioned output is made whole for its gradient");
      over_tp(Op::all_gather, view_.activation_bytes(), l.dtype, "pipeline",
              "the partitioned gradient from the stage after is made whole");
    }
    return out;
  }

  // ---- ZeRO
  std::vector<Entry> fetch(Count layer, bool forward) const {
    std::vector<Entry> out;
    const Phase phase = forward ? Phase::forward : Phase::backward;
    out.push_back(wait_for(token::parameters, phase));
    for (const bool expert : {false, true}) {
      const Fetches& fetches = forward ? fetches_[expert].forward : fetches_[expert].backward;
      const auto found = fetches.find(layer);
      if (found == fetches.end() || group(expert) < 2) continue;
      for (std::size_t i = 0; i < found->second.size(); ++i) {
        const Count elements = found->second[i];
        out.push_back(async(comm(Op::all_gather, group_name(expert), group(expert),
                                 product({elements, view_.e}, "parameters"), view_.layout.dtype, phase, "parameters",
                                 forward ? "ZeRO-3: parameters of the next modules, coalesced"
                                         : "ZeRO-3: released after the forward pass, gathered again"),
                            token::parameters));
        // The first fetch of a step is waited for at once, as is every fetch without prefetching.
        const bool first = forward && i == 0 && found == fetches.begin();
        if (first || flags_.prefetch_elements == 0) {
          out.back().exposed = true;
          out.back().token = 0;
        }
      }
    }
    return out;
  }

  std::vector<Entry> flush(Count layer) const {
    std::vector<Entry> out;
    for (const bool expert : {false, true}) {
      Count sent = 0;
      for (const Flush& f : flushes_[expert]) {
        if (f.layer == layer) reduce(out, f.elements, sent, expert, Phase::backward);
        sent += f.elements;
      }
    }
    return out;
  }

  void reduce(std::vector<Entry>& out, Count count, Count sent, bool expert, Phase phase) const {
    if (group(expert) < 2) return;
    const auto put = [&](Op op, Count elements, std::string_view why) {
      Entry entry = comm(op, group_name(expert), group(expert), product({elements, wide_}, "gradients"), grad_, phase,
                         "gradients", why);
      out.push_back(overlap_ && (zero_ >= 2 || boundary_overlap()) ? async(std::move(entry), token::gradients)
                                                                   : std::move(entry));
    };
    if (zero_ == 3)
      return put(Op::reduce_scatter, count, "ZeRO-3: a full bucket of gradients, each rank keeps its slices");
    if (zero_ == 0 || flags_.multi_rank_bucket_allreduce || !flags_.reduce_scatter) {
      return put(Op::all_reduce, count,
                 zero_ == 0 ? "replicas average a bucket of gradients"
                            : "a bucket with several owners is all_reduced (use_multi_rank_bucket_allreduce)");
    }
    // Buckets fill from the last parameter to the first; owners' slices are counted from the first.
    const Count total = elements(view_.tensors(), expert);
    for (const Count slice : owner_slices(total - sent - count, total - sent, total, group(expert))) {
      put(Op::reduce, slice, "a slice of the bucket goes to the rank that owns it");
    }
  }

  void boundary_reduction() {
    std::vector<Entry> out;
    for (const bool expert : {false, true}) {
      Count sent = 0;
      for (const Flush& f : flushes_[expert]) {
        reduce(out, f.elements, sent, expert, Phase::grad_sync);
        sent += f.elements;
      }
    }
    for (Entry& entry : out) schedule_.add(0, std::move(entry));
  }

  void step() {
    const auto scalar = [&](std::string_view name, Count size, Count bytes, DType dtype, ReduceOp reduce,
                            std::string_view why) {
      Entry entry = comm(Op::all_reduce, name, size, bytes, dtype, Phase::optimizer, "scalars", why);
      entry.reduce = reduce;
      entry.purpose = reduce == ReduceOp::max ? Purpose::overflow : Purpose::gradient_norm;
      add_comm(schedule_, 0, std::move(entry));
    };
    // As recorded with 0.19.8: no overflow check for f32; stage 3 sums norms in f64.
    if (view_.layout.dtype != DType::f32) {
      if (zero_ > 0)
        scalar("dp", view_.dp_group, 1, DType::u8, ReduceOp::max, "overflow flag over the gradient slices");
      scalar("model", view_.model_group, 1, DType::u8, ReduceOp::max, "overflow flag over the model's shards");
    }
    if (flags_.gradient_clipping) {
      if (zero_ > 0) {
        const DType norm = zero_ == 3 ? DType::f64 : DType::f32;
        scalar("dp", view_.dp_group, static_cast<Count>(size_of(norm)), norm, ReduceOp::sum,
               "norm of the gradient slices");
      }
      scalar("model", view_.model_group, 4, DType::f32, ReduceOp::sum, "norm over the model's shards");
    }
    const Count owned = sum(ceil_div(elements(view_.tensors(), false), zero_ > 0 ? view_.dp_group : 1),
                            ceil_div(elements(view_.tensors(), true), zero_ > 0 ? view_.expert_dp_group : 1));
    schedule_.add(0, memory_bound(product({owned, adam_bytes_per_parameter}), Phase::optimizer, "adam"));
    for (const bool expert : {false, true}) updated_parameters(expert);
  }

  void updated_parameters(bool expert) {
    const auto gather = [&](Count count, std::string_view why) {
      add_comm(schedule_, 0,
               comm(Op::all_gather, group_name(expert), group(expert), product({count, view_.e}, "parameters"),
                    view_.layout.dtype, Phase::optimizer, "parameters", why));
    };
    if (zero_ == 3) {  // one by one, as observed with 0.19.8; fetches are coalesced, these are not
      for (const Count padded : fetches_[expert].persistent)
        gather(padded, "a persistent parameter (below the persistence threshold) becomes whole again");
      return;
    }
    if (zero_ == 0) return;
    // Slices are aligned to 4 bytes: the flat group is padded to a multiple of 2·d elements.
    Count matrices = 0, vectors = 0;
    for (const LocalTensor& t : view_.tensors()) {
      if (t.expert() == expert) (t.tensor->matrix || rules_.parameter_groups == 1 ? matrices : vectors) += t.elements;
    }
    // The whole flat group at once: all_gather_into_tensor ignores allgather_bucket_size.
    for (const Count count : {matrices, vectors})
      gather(round_up(count, product({2, group(expert)})),
             "ZeRO: updated slices become whole parameters, once per parameter group");
  }

  // ---- pipeline
  bool partitioned() const { return flags_.partitioned_pipe && view_.layout.tp > 1 && view_.layout.pp > 1; }

  void message(Op op, bool activation, Count micro_batch) {
    const Layout& l = view_.layout;
    const bool next = (op == Op::send) == activation;
    Schedule::Node node;
    node.micro_batch = micro_batch;
    const auto put = [&](Count bytes, DType dtype, std::string_view why) {
      Entry entry = comm(op, "pp", l.pp, bytes, dtype, activation ? Phase::forward : Phase::backward, "pipeline", why);
      entry.peer = view_.stage_rank(view_.at.pp + (next ? 1 : -1));
      schedule_.add(0, std::move(entry), node);
    };
    if (partitioned()) {
      // PartitionedTensor.to_meta: number of dimensions, three sizes, parts, rank, t+1 offsets.
      put(8 * (Count{l.tp} + 7), DType::i64, "how the tensor that follows is partitioned over tp");
      put(product({ceil_div(product({view_.tokens, view_.model.hidden}), l.tp), view_.e}), l.dtype,
          activation ? "this tensor rank's part of the activation" : "this tensor rank's part of the gradient");
    } else {
      put(view_.activation_bytes(), l.dtype,
          activation ? "activation between pipeline stages" : "gradient between pipeline stages");
    }
    if (activation && rules_.sends_mask)
      put(product({l.seq, l.seq, 2}, "attention mask"), DType::f16,
          "the attention mask travels with the activation, as f16");
  }

  void pipeline() {
    pass_order(view_.layout, view_.at.pp);  // rejects a schedule that is too long
    for (const Command& command : train_schedule(view_.at.pp, view_.layout.pp, view_.micro_batches)) {
      switch (command.what) {
        case Instruction::recv_activation: message(Op::recv, true, command.micro_batch); break;
        case Instruction::send_activation: message(Op::send, true, command.micro_batch); break;
        case Instruction::recv_grad: message(Op::recv, false, command.micro_batch); break;
        case Instruction::send_grad: message(Op::send, false, command.micro_batch); break;
        case Instruction::forward: add_pass(schedule_, 0, pass_block(true), {true, command.micro_batch, 0}); break;
        case Instruction::backward: add_pass(schedule_, 0, pass_block(false), {false, command.micro_batch, 0}); break;
      }
    }
    // _aggregate_total_loss: the last stage averages and broadcasts to the others.
    const auto loss = [&](Op op, std::string_view group, Count size, Count bytes, std::string_view why) {
      Entry entry = comm(op, group, size, bytes, DType::f32, Phase::grad_sync, "scalars", why);
      entry.purpose = Purpose::loss;
      add_comm(schedule_, 0, std::move(entry));
    };
    if (view_.last_stage()) loss(Op::all_reduce, "dp", view_.dp_group, 4, "loss averaged over replicas");
    if (view_.model.tied_embeddings && (view_.first_stage() || view_.last_stage())) {
      add_comm(
          schedule_, 0,
          comm(Op::all_reduce, "embedding", 2, product({view_.local.vocab, view_.model.hidden, wide_}, "embedding"),
               grad_, Phase::grad_sync, "embedding", "first and last stage share the embedding (ReduceTiedGrads)"));
    }
    loss(Op::broadcast, "pp", view_.layout.pp, 8, "the last stage tells the loss to the others");
  }

  EngineRules rules_;
  View view_;
  Flags flags_;
  DType grad_;
  Count wide_;
  int zero_;
  bool overlap_;
  Schedule schedule_;
  Body body_;
  std::vector<Flush> flushes_[2];
  FetchPlan fetches_[2];
};

}  // namespace

Schedule engine_schedule(const Model& m, const Layout& l, Count rank, const EngineRules& rules) {
  return Engine(m, l, rank, rules).make();
}

}  // namespace medley::plan
