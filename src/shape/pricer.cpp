#include "shape/pricer.hpp"

namespace medley::shape {

Cost& Cost::operator+=(const Cost& other) noexcept {
  gemm += other.gemm;
  attention += other.attention;
  memory += other.memory;
  communication += other.communication;
  flops += other.flops;
  return *this;
}

Cost Cost::operator*(double factor) const noexcept {
  return {gemm * factor, attention * factor, memory * factor, communication * factor, flops * factor};
}

Pricer::Pricer(const GpuModel& gpu)
    : machine_(machine_with(gpu.gpu())), kernels_(gpu, machine_.constants.flash1_share) {}

double Pricer::us(const Operator& op) {
  return kernels_.us(op.entry) + machine_.constants.idle_us(plan::Framework::textbook, {}) * double(op.count);
}

Cost Pricer::price(const Operators& operators) {
  Cost cost;
  for (const Operator& op : operators) {
    (std::holds_alternative<Gemm>(op.work)        ? cost.gemm
     : std::holds_alternative<Attention>(op.work) ? cost.attention
                                                  : cost.memory) += us(op);
    if (op.pass != Pass::recompute) cost.flops += op.flops();
  }
  return cost;
}

}  // namespace medley::shape
