#include "plan/aicb.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "plan/view.hpp"
#include "plan/volume.hpp"

namespace medley::plan {
namespace {

bool starts(std::string_view text, std::string_view with) { return text.substr(0, with.size()) == with; }

/// The purpose of one of our operations, in words that AICB's stages also map to.
std::string purpose_of(const Row& r) {
  const std::string pass = r.phase == Phase::backward    ? "backward"
                           : r.phase == Phase::recompute ? "recompute"
                                                         : "forward";
  if (r.module == "data" || r.module == "loss" || r.module == "pipeline")
    return r.group == "tp" && r.module == "pipeline" ? "pipeline partitions" : r.module;
  if (r.module == "embedding") return r.group == "embedding" ? "tied embedding" : "embedding " + pass;
  if (r.module == "head") return "head " + pass;
  if (r.module == "attention" || r.module == "mlp" || r.module == "mlp.shared") return "layers " + pass;
  if (r.module == "mlp.experts" || r.module == "mlp.router") return "experts " + pass;
  if (r.module == "norms") return "norm gradients";
  if (r.module == "gradients") return "gradients";
  if (r.module == "parameters") return r.phase == Phase::optimizer ? "updated parameters" : "fetch " + pass;
  if (r.module == "scalars")
    return r.purpose == Purpose::loss ? "log" : r.purpose == Purpose::gradient_norm ? "gradient norm" : "overflow";
  return r.module + " " + pass;
}

std::string purpose_of(const AicbRow& r) {
  const std::string& s = r.stage;
  const std::string pass = starts(s, "backward") ? "backward" : "forward";
  const auto has = [&](const char* word) { return s.find(word) != std::string::npos; };
  if (r.op == Op::send || r.op == Op::recv) return "pipeline";
  if (has("CrossEntropy")) return "loss";
  if (has("average_losses")) return "log";
  if (r.op == Op::broadcast && starts(s, "forward_step")) return "data";
  if (has("Embedding")) return "embedding " + pass;
  if (has("MoE")) return "experts " + pass;
  if (has("RowLinear") || has("ColumnLinear")) return "layers " + pass;
  if (has("layernorm_grads")) return "norm gradients";
  if (has("check_for_nan") || has("grad_norm")) return "gradient norm";
  if (has("has_overflow")) return "overflow";
  if (has("allreduce_bucket") || has("average_tensor") || has("reduce_scatter_fn") || has("finish_grad_sync"))
    return "gradients";
  if (has("all_gather_dp_groups")) return "updated parameters";
  if (has("allgather_fn")) return starts(s, "step") ? "updated parameters" : "fetch " + pass;
  if (s == "step") return r.op == Op::all_gather ? "updated parameters" : "gradients";
  return s;
}

// An explanation that only the totals show, when a list was made with options unknown to the plan.
std::string loose_cause(const std::string& purpose, const Side& ours, const Side& theirs) {
  const auto volume = [](const Side& side) {
    Count total = 0;
    for (const auto& [key, count] : side) total = sum(total, product({std::get<2>(key), count}));
    return total;
  };
  const auto only = [&](Op op) {
    return !theirs.empty() &&
           std::all_of(theirs.begin(), theirs.end(), [&](const auto& row) { return std::get<0>(row.first) == op; });
  };
  if (purpose == "gradients" && only(Op::reduce) && volume(theirs) == volume(ours)) {
    return "AICB with contiguous_gradients reduces slices to their owners; DeepSpeed does with "
           "use_multi_rank_bucket_allreduce=false";
  }
  return {};
}

using Purposes = std::map<std::string, Side>;

Purposes purposes_of(const Schedule& schedule) {
  Purposes out;
  for (const Row& r : rows_of(schedule)) out[purpose_of(r)][{r.op, std::string(r.group), r.bytes}] += r.count;
  return out;
}

/// The kind of job that AICB's lists describe: as many key-value heads as heads under Megatron, the
/// framework's own gradient type, 16 bits, no recomputation. A cause says why AICB and the framework differ
/// on such a job; for a different plan, the difference may come from the plan.
Purposes described_job(Model model, Layout layout, Framework framework, Count rank) {
  if (framework == Framework::megatron) model.kv_heads = model.heads;
  layout.grad_dtype.reset();
  layout.recompute = Recompute::none;
  layout.dtype = DType::bf16;
  return purposes_of(make_schedule(model, layout, framework, rank));
}

/// Compares group sizes with the list's; each group has one size, or none in any row.
void compare_groups(const Schedule& schedule, const AicbList& list, Comparison& result, std::set<std::string>& notes) {
  std::map<std::string, Count> planned;
  std::map<std::string, std::set<Count>> listed;
  for (const Row& r : rows_of(schedule)) planned[std::string(r.group)] = r.group_size;
  for (const AicbRow& r : list.rows) listed[r.group].insert(r.group_size);
  for (const auto& [group, sizes] : listed) {
    const auto ours = planned.find(group);
    const Count size = *sizes.begin();
    if (sizes.size() == 1 && (ours == planned.end() || ours->second == size)) continue;
    if (sizes.size() == 1 && group == "pp" && size == 1)
      notes.insert("AICB gives point-to-point messages a group size of 1");
    else if (sizes.size() == 1 && size == 0)
      notes.insert(fmt::format("AICB leaves out the size of the {} group", group));
    else result.differ.push_back({"group " + group, {}, {}, {}});
  }
}

}  // namespace

bool Comparison::explained() const {
  return std::none_of(differ.begin(), differ.end(), [](const Difference& d) { return d.cause.empty(); });
}

std::string text_of(const Side& side) {
  if (side.empty()) return "nothing";
  if (side.size() > 3) {
    Count count = 0, low = INT64_MAX, high = 0;
    std::set<std::string> ops;
    for (const auto& [key, n] : side) {
      count += n;
      low = std::min(low, std::get<2>(key));
      high = std::max(high, std::get<2>(key));
      ops.insert(std::string(name(std::get<0>(key))) + " " + std::get<1>(key));
    }
    return fmt::format("{} × {} of {}–{} B", count, fmt::join(ops, ", "), low, high);
  }
  std::string text;
  for (const auto& [key, n] : side)
    text += fmt::format("{}{} × {} {} of {} B", text.empty() ? "" : ", ", n, name(std::get<0>(key)), std::get<1>(key),
                        std::get<2>(key));
  return text;
}

Comparison compare_with_aicb(const Model& model, const Layout& layout, Framework framework, Count rank,
                             const Schedule& schedule, const AicbList& list) {
  Comparison result;
  std::set<std::string> notes;
  compare_groups(schedule, list, result, notes);
  if (!list.ends) {
    result.differ.push_back({"end of the step", {}, {}, {}});
    notes.insert("the list breaks off before the row epoch_end of its first step: it is not whole");
  }
  if (list.setup_rows > 0)
    notes.insert(fmt::format("AICB lists {} operations of setup, which a step does not have", list.setup_rows));
  Purposes planned = purposes_of(schedule), listed;
  for (const AicbRow& r : list.rows) listed[purpose_of(r)][{r.op, r.group, r.bytes}] += 1;
  Purposes described = described_job(model, layout, framework, rank);
  std::set<std::string> names;
  for (const Purposes* side : {&planned, &listed})
    for (const auto& [purpose, rows] : *side) names.insert(purpose);
  for (const std::string& purpose : names) {
    const Side &ours = planned[purpose], &theirs = listed[purpose];
    if (ours == theirs) {
      result.agree.push_back(purpose);
      continue;
    }
    Difference difference{purpose, ours, theirs, {}};
    if (ours != described[purpose]) {
      notes.insert(
          "the plan is of another job than AICB can describe: it knows no grouped key-value heads, no type "
          "of "
          "gradients but the framework's own, 16 bits only, and nothing recomputed");
    } else {
      for (const AicbVersion& version : aicb_versions(model, layout, framework, rank, purpose)) {
        if (version.rows == theirs && difference.cause.empty()) difference.cause = version.cause;
      }
      if (difference.cause.empty()) difference.cause = loose_cause(purpose, ours, theirs);
    }
    result.differ.push_back(std::move(difference));
  }
  result.notes.assign(notes.begin(), notes.end());
  return result;
}

}  // namespace medley::plan
