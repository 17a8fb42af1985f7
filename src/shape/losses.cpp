#include "shape/losses.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "shape/pricer.hpp"

namespace medley::shape {
namespace {

// Layers that differ only in what their attention sees share the other rows.
bool same_row(const PricedOperator& a, const Operator& op, const Block& block) {
  return a.block.kind == block.kind && a.block.layer.moe == block.layer.moe && a.block != block &&
         a.op.label() == op.label() && a.op.entry.module == op.entry.module && a.op.entry.kind == op.entry.kind &&
         a.op.entry.bytes == op.entry.bytes && a.op.count == op.count && a.op.flops() == op.flops();
}

void append(std::vector<PricedOperator>& to, Pricer& pricer, const Operators& operators, const Block& block,
            Count times, GemmType type) {
  const std::size_t before = to.size();
  std::vector<bool> counted(before, false);
  for (const Operator& op : operators) {
    std::size_t row = 0;
    while (row < before && (counted[row] || !same_row(to[row], op, block))) ++row;
    if (row < before) {
      to[row].times += times;
      counted[row] = true;
      continue;
    }
    PricedOperator priced{.op = op, .block = block, .times = times};
    priced.us = pricer.us(op);
    if (const auto* gemm = std::get_if<Gemm>(&op.work)) {
      priced.gemm = pricer.gpu().predict(*gemm);
      priced.tflops = priced.gemm.tflops;
      priced.efficiency = priced.gemm.efficiency;
    } else if (std::holds_alternative<Attention>(op.work)) {
      priced.tflops = op.flops() / priced.us * 1e-6;
      priced.efficiency = priced.tflops / pricer.gpu().peak_tflops(type);
    }
    to.push_back(std::move(priced));
  }
}

}  // namespace

std::vector<PricedOperator> price_operators(const GpuModel& gpu, const Model& model, const Workload& work) {
  std::vector<PricedOperator> out;
  Pricer pricer(gpu);
  append(out, pricer, embedding_operators(model, work), {plan::BlockKind::embedding}, 1, work.type());
  for (const auto& [kind, count] : model.kinds())
    append(out, pricer, layer_operators(model, work, kind), {plan::BlockKind::layer, kind}, count, work.type());
  append(out, pricer, head_operators(model, work), {plan::BlockKind::head}, 1, work.type());
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

std::string largest_saving(const std::vector<PricedOperator>& before, const std::vector<PricedOperator>& after) {
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
