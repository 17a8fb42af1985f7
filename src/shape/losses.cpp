#include "shape/losses.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace medley::shape {
namespace {

void append(std::vector<PricedOperator>& to, const GpuModel& gpu, const Operators& operators, Block block,
            Count times) {
  for (const Operator& op : operators) {
    PricedOperator priced{.op = op, .block = block, .times = times};
    if (const auto* gemm = std::get_if<Gemm>(&op.work)) {
      priced.gemm = gpu.predict(*gemm);
      priced.us = priced.gemm.us;
    } else if (const auto* attention = std::get_if<Attention>(&op.work)) {
      priced.us = gpu.attention_us(*attention, op.pass == Pass::backward, op.kernel);
    } else if (const auto* stream = std::get_if<Stream>(&op.work)) {
      priced.us = gpu.stream_us(stream->op, stream->bytes);
    }
    priced.us *= double(op.count);
    to.push_back(std::move(priced));
  }
}

}  // namespace

std::string_view name(Block block) noexcept {
  constexpr std::array<std::string_view, 4> names{"layer", "moe layer", "embedding", "head"};
  return names[std::size_t(block)];
}

std::vector<PricedOperator> price_operators(const GpuModel& gpu, const Model& model, const Workload& work) {
  std::vector<PricedOperator> out;
  const Count routed = model.moe_layers();
  append(out, gpu, embedding_operators(model, work), Block::embedding, 1);
  if (routed < model.layers)
    append(out, gpu, layer_operators(model, work, false), Block::layer, model.layers - routed);
  if (routed > 0) append(out, gpu, layer_operators(model, work, true), Block::moe_layer, routed);
  append(out, gpu, head_operators(model, work), Block::head, 1);
  return out;
}

GemmLosses total_losses(const std::vector<PricedOperator>& operators) {
  GemmLosses total;
  for (const auto& priced : operators) {
    if (!priced.is_gemm()) continue;
    const double calls = double(priced.op.count) * double(priced.times);
    total.alignment += calls * priced.gemm.lost.alignment;
    total.tile += calls * priced.gemm.lost.tile;
    total.wave += calls * priced.gemm.lost.wave;
    total.memory += calls * priced.gemm.lost.memory;
    total.launch += calls * priced.gemm.lost.launch;
  }
  return total;
}

std::vector<std::pair<std::string_view, double>> by_cause(const GemmLosses& lost) {
  return {{"alignment", lost.alignment},
          {"tile", lost.tile},
          {"wave", lost.wave},
          {"memory", lost.memory},
          {"launch", lost.launch}};
}

std::string largest_saving(const std::vector<PricedOperator>& before,
                           const std::vector<PricedOperator>& after) {
  const PricedOperator* from = nullptr;
  const PricedOperator* to = nullptr;
  double most = 0;
  for (const auto& old : before) {
    const auto match = std::ranges::find_if(after, [&](const PricedOperator& p) {
      return p.block == old.block && p.op.name == old.op.name && p.op.pass == old.op.pass;
    });
    if (match == after.end()) continue;
    const double saved = old.us * double(old.times) - match->us * double(match->times);
    if (saved > most) most = saved, from = &old, to = &*match;
  }
  if (!from) return "";
  if (!from->is_gemm()) return fmt::format("{} is shorter", from->op.label());
  const auto was = by_cause(from->gemm.lost), now = by_cause(to->gemm.lost);
  std::size_t cause = 0;
  for (std::size_t i = 1; i < was.size(); ++i)
    if (was[i].second - now[i].second > was[cause].second - now[cause].second) cause = i;
  return fmt::format("{} loses less to {}", from->op.label(), was[cause].first);
}

}  // namespace medley::shape
