// Shapes next to a given one: each change alters one number (and what depends on it) and leaves a model that
// still has a valid layout. The advisor, the linter and the rules price these changes; this file judges none.
#pragma once

#include <string_view>
#include <vector>

#include "shape/operators.hpp"

namespace medley::shape {

/// Which number of a model or layout changes.
enum class Knob : std::uint8_t { vocabulary, heads, ffn, expert_ffn, hidden, layers, micro_batch, tensor_parallel };
std::string_view name(Knob knob) noexcept;

struct Change {
  Knob knob = Knob::vocabulary;
  Count was = 0, now = 0;
  Model model;
  Workload work;
};
using Changes = std::vector<Change>;

/// The vocabulary padded to multiples of 8, 16, 32, 64 and 128 per rank.
Changes vocabulary_changes(const Model& model, const Workload& work);
/// Other head counts at the same width of queries, keys and values, within a factor of two: no parameter
/// changes.
Changes head_changes(const Model& model, const Workload& work);
/// Widths of the MLP (or of each expert) within `tolerance`, in multiples of 8 per rank.
Changes ffn_changes(const Model& model, const Workload& work, double tolerance);
/// Hidden sizes within `tolerance`, multiples of 64, with constant heads or head width and the MLP in
/// proportion.
Changes hidden_changes(const Model& model, const Workload& work, double tolerance);
/// The nearest layer counts below and above that pp divides.
Changes layer_changes(const Model& model, const Workload& work);
/// Every smaller tp that divides this one.
Changes tensor_parallel_changes(const Model& model, const Workload& work);

}  // namespace medley::shape
