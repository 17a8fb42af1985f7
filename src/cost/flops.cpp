#include "cost/flops.hpp"

namespace medley::cost {
namespace {

/// Forward FLOPs of one token.
struct TokenFlops {
  double weights;    ///< of the layers' matrices
  double attention;  ///< scores and values
  double logits;
};

TokenFlops forward_flops(const Model& m, Count seq, bool decode) {
  const Parameters p = count_parameters(m);
  const double matrices = static_cast<double>(p.active - p.embedding - p.positions - p.norms - p.head);
  const double widths = static_cast<double>(m.heads * (m.query_head_dim() + m.value_head_dim()));
  double squares = 0;  // layers, weighted by the part of the square inside their window
  for (const auto& [kind, count] : m.kinds())
    squares += static_cast<double>(count) *
               (decode ? static_cast<double>(m.keys_kept(kind.span, seq)) / static_cast<double>(seq)
                       : m.pairs_share(kind.span, seq));
  return {.weights = 2 * matrices,
          .attention = 2 * static_cast<double>(seq) * widths * squares,
          .logits = 2 * static_cast<double>(m.hidden) * static_cast<double>(m.vocab)};
}

double tokens(const Layout& l) { return static_cast<double>(l.global_batch) * static_cast<double>(l.seq); }

}  // namespace

double model_flops(const Model& model, const Layout& layout) {
  const TokenFlops f = forward_flops(model, layout.seq, layout.mode == Mode::decode);
  if (layout.mode == Mode::prefill)  // logits of the last token only
    return tokens(layout) * (f.weights + f.attention) + static_cast<double>(layout.global_batch) * f.logits;
  if (layout.mode == Mode::decode)
    return static_cast<double>(layout.global_batch) * (f.weights + f.attention + f.logits);
  return 3 * tokens(layout) * (f.weights + f.attention + f.logits);
}

double hardware_flops(const Model& model, const Layout& layout) {
  const TokenFlops f = forward_flops(model, layout.seq, layout.mode == Mode::decode);
  double again = 0;
  if (layout.recompute == Recompute::full) again = f.weights + f.attention;
  if (layout.recompute == Recompute::selective) again = f.attention;
  if (layout.recompute == Recompute::per_op) again = f.weights / 2;
  return model_flops(model, layout) + tokens(layout) * again;
}

}  // namespace medley::cost
