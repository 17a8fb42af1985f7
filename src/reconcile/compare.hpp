// Compares one rank's step with its plan: first operation by operation, then, where that fails, by how often each kind
// occurs. Leftovers on either side become lines of differences.
#pragma once

#include <string>
#include <vector>

#include "reconcile/kinds.hpp"

namespace medley::reconcile {

enum class Verdict : std::uint8_t {
  matched,
  missing,  ///< expected and not seen
  extra,    ///< seen and not expected
  count,    ///< more or fewer of them
  size,     ///< different bytes
  field,    ///< different dtype, reduction, root, phase, …
  order,    ///< the right operations in another order
};
std::string_view name(Verdict verdict) noexcept;

/// One row of a comparison; a missing side has count 0.
struct Line {
  Verdict verdict = Verdict::matched;
  std::uint32_t expected = 0, observed = 0;  ///< numbers in the catalog
  std::int64_t expected_count = 0, observed_count = 0;
  std::vector<Field> fields;  ///< that differ
  std::string detail;         ///< for a difference in order: where
  std::string cause;          ///< empty: none is known
  bool differs() const { return verdict != Verdict::matched; }
  bool operator==(const Line&) const = default;
};

/// How often each kind occurs, in order of first issue.
struct Tally {
  std::vector<std::uint32_t> kinds;
  std::unordered_map<std::uint32_t, std::int64_t> counts;
  explicit Tally(const Sequence& sequence);
  std::int64_t of(std::uint32_t kind) const {
    const auto found = counts.find(kind);
    return found == counts.end() ? 0 : found->second;
  }
};

struct Comparison {
  std::vector<Line> lines;
  Tally left_expected, left_observed;  ///< without a match
  std::size_t differences() const;
};

/// `order`: whether the sequences must agree in it.
Comparison compare(const Catalog& catalog, const Sequence& expected, const Sequence& observed, bool order);

}  // namespace medley::reconcile
