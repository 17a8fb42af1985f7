#include "profile.hpp"

#include <torch/csrc/distributed/c10d/ParamCommsUtils.hpp>

#include <array>

namespace medley::torch {
namespace {

/// nccl's names, which readers of such traces look for.
const char* torch_name(Op op) {
  switch (op) {
    case Op::all_reduce:
      return "allreduce";
    case Op::all_gather:
      return "_allgather_base";
    case Op::all_gatherv:
      return "all_gather";
    case Op::reduce_scatter:
      return "_reduce_scatter_base";
    case Op::reduce_scatterv:
      return "reduce_scatter";
    case Op::all_to_allv:
      return "all_to_allv";
    default:
      return name(op).data();  // literals, the same in both
  }
}

struct Elements {
  std::int64_t in = 0, out = 0;
};

Elements elements_of(const Call& call, int ranks) {
  const std::int64_t given = call.in ? call.in->numel() : 0, other = call.out ? call.out->numel() : given;
  switch (call.op) {
    case Op::gather:
      return {given, given * ranks};
    case Op::scatter:
      return {given * ranks, given};
    default:
      return {given, other};
  }
}

/// First rank and stride of the group's ranks; stride -1: not regular.
std::pair<int, int> stride_of(const std::vector<std::uint64_t>& ranks) {
  if (ranks.empty()) return {0, 1};  // the default group
  const int first = static_cast<int>(ranks[0]);
  if (ranks.size() == 1) return {first, 1};
  const auto step = static_cast<std::int64_t>(ranks[1]) - first;
  for (std::size_t i = 1; i < ranks.size(); ++i) {
    if (static_cast<std::int64_t>(ranks[i]) - static_cast<std::int64_t>(ranks[i - 1]) != step || step < 1)
      return {first, -1};
  }
  return {first, static_cast<int>(step)};
}

/// Not all supported versions of torch record whether an operation is async, or number operations.
template <typename Info, typename... Told>
std::shared_ptr<Info> make_info(bool async, Told&&... told) {
  if constexpr (std::is_constructible_v<Info, Told..., bool>) {
    return std::make_shared<Info>(std::forward<Told>(told)..., async);
  } else {
    return std::make_shared<Info>(std::forward<Told>(told)...);
  }
}

template <typename Info>
void number(Info& info, std::uint64_t sequence, bool message) {
  if constexpr (requires { info.setSequenceInfo(std::int64_t{}, true); })
    info.setSequenceInfo(static_cast<std::int64_t>(sequence), message);
}

}  // namespace

Profiled::Profiled(const c10d::Backend& group, const std::vector<std::uint64_t>& global_ranks,
                   const Call& call, std::uint64_t sequence) {
  auto callbacks = at::getStepCallbacksUnlessEmpty(at::RecordScope::FUNCTION);
  if (!callbacks) return;
  const bool message = call.op == Op::send || call.op == Op::recv;
  const Elements elements = elements_of(call, group.getSize());
  const auto [first, step] = stride_of(global_ranks);
  std::string title = torch_name(call.op);
  const auto info = make_info<::torch::ParamCommsDebugInfo>(
      call.async, std::tuple(group.getGroupUid(), group.getGroupDesc()),
      message ? call.peer : group.getRank(), std::move(title), elements.in, elements.out,
      call.in ? call.in->scalar_type() : at::kByte, std::vector<std::int64_t>{}, std::vector<std::int64_t>{},
      first, step, group.getSize());
  number(*info, sequence, message);
  info_.emplace(c10::DebugInfoKind::PARAM_COMMS_INFO, info);
  function_.emplace(std::move(*callbacks));
  function_->before(at::kParamCommsCallName);
}

}  // namespace medley::torch
