#include "shape/operator_list.hpp"

namespace medley::shape {

OperatorList::OperatorList(const Model& model_, const Workload& work_)
    : model(model_), work(work_), tp(work_.layout.tp), tokens(work_.tokens()) {
  const double split = work.layout.sp ? double(tp) : 1.0;
  kept = double(tokens) * double(model.hidden) * activation_bytes / split;
}

void OperatorList::gemm(std::string_view name, Pass pass, Count m, Count n, Count k, Count batch, GemmLayout layout) {
  list_.push_back({.name = name,
                   .pass = pass,
                   .work = Gemm{.name = {}, .m = m, .n = n, .k = k, .batch = batch, .layout = layout, .type = work.type}});
}

void OperatorList::linear(std::string_view name, Count tokens_, Count in, Count out, Count count, Count batch) {
  gemm(name, Pass::forward, out, tokens_, in, batch, GemmLayout::TN);
  list_.back().count = count;
  if (!training()) return;
  gemm(name, Pass::dgrad, in, tokens_, out, batch, GemmLayout::NN);
  list_.back().count = count;
  gemm(name, Pass::wgrad, in, out, tokens_, batch, GemmLayout::NT);
  list_.back().count = count;
}

void OperatorList::attention(std::string_view name, const Attention& attention) {
  list_.push_back({.name = name, .pass = Pass::forward, .work = attention});
  if (training()) list_.push_back({.name = name, .pass = Pass::backward, .work = attention});
}

void OperatorList::stream(std::string_view name, StreamOp op, double forward, double backward, Count count) {
  list_.push_back({.name = name, .pass = Pass::forward, .work = Stream{op, forward}, .count = count});
  if (!training() || backward <= 0) return;
  const StreamOp back = op == StreamOp::layer_norm ? StreamOp::layer_norm_backward : op;
  list_.push_back({.name = name, .pass = Pass::backward, .work = Stream{back, backward}, .count = count});
}

}  // namespace medley::shape
