#include "reconcile/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

namespace medley::reconcile {
namespace {

/// The result of pairing two tallies.
struct Pairs {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::int64_t> count;  ///< expected, observed
};

void take(Tally& e, Tally& o, std::uint32_t kind_e, std::uint32_t kind_o, Pairs& pairs) {
  std::int64_t &have = e.counts[kind_e], &seen = o.counts[kind_o];
  const std::int64_t both = std::min(have, seen);
  if (both <= 0) return;
  have -= both;
  seen -= both;
  pairs.count[{kind_e, kind_o}] += both;
}

Pairs pair_up(const Catalog& catalog, Tally& e, Tally& o) {
  Pairs pairs;
  for (const std::uint32_t kind : e.kinds) {
    if (o.of(kind) > 0) take(e, o, kind, kind, pairs);
  }
  // Kinds with unknown fields on one side take what is left.
  for (const std::uint32_t seen : o.kinds) {
    for (const std::uint32_t have : e.kinds) {
      if (o.of(seen) <= 0) break;
      if (e.of(have) > 0 && catalog.fits(have, seen)) take(e, o, have, seen, pairs);
    }
  }
  return pairs;
}

/// Matched rows, and rows that occur a different number of times.
void matched_lines(const Tally& expected, Tally& e, Tally& o, const Pairs& pairs, Comparison& out) {
  for (const std::uint32_t kind : expected.kinds) {
    std::int64_t matched = 0, more = 0;
    std::uint32_t partner = kind;
    for (auto at = pairs.count.lower_bound({kind, 0}); at != pairs.count.end() && at->first.first == kind; ++at) {
      matched += at->second;
      partner = at->first.second;
      more += o.of(partner);
    }
    if (matched == 0) continue;
    Line line{Verdict::matched, kind, partner, matched, matched, {}, {}, {}};
    const std::int64_t fewer = e.of(kind);
    if (fewer > 0 || (more > 0 && e.of(kind) == 0)) {
      line.verdict = Verdict::count;
      line.expected_count += fewer;
      line.observed_count += fewer > 0 ? 0 : more;
      e.counts[kind] = 0;
      if (fewer == 0) o.counts[partner] = 0;
    }
    out.lines.push_back(line);
  }
}

/// Rows of one op that differ in as few fields as possible, then rows without a partner.
void other_lines(const Catalog& catalog, Tally& e, Tally& o, Comparison& out) {
  struct Candidate {
    std::size_t fields;
    std::uint32_t e, o;
  };
  std::vector<Candidate> candidates;
  for (const std::uint32_t have : e.kinds) {
    for (const std::uint32_t seen : o.kinds) {
      if (e.of(have) <= 0 || o.of(seen) <= 0 || catalog[have].op != catalog[seen].op) continue;
      const auto fields = catalog.differing(have, seen);
      const bool same_group = std::find(fields.begin(), fields.end(), Field::group) == fields.end();
      // Equal counts, or equal but for one field: otherwise the pair is a guess.
      if (same_group && (e.of(have) == o.of(seen) || fields.size() == 1))
        candidates.push_back({fields.size(), have, seen});
    }
    if (candidates.size() > (std::size_t{1} << 20)) break;
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.fields < b.fields; });
  for (const Candidate& c : candidates) {
    if (e.of(c.e) <= 0 || o.of(c.o) <= 0) continue;
    const auto fields = catalog.differing(c.e, c.o);
    const bool size = fields == std::vector<Field>{Field::bytes};
    const std::int64_t both = std::min(e.of(c.e), o.of(c.o));
    out.lines.push_back({size ? Verdict::size : Verdict::field, c.e, c.o, both, both, fields, {}, {}});
    e.counts[c.e] -= both;
    o.counts[c.o] -= both;
  }
  for (const std::uint32_t kind : e.kinds) {
    if (e.of(kind) > 0) out.lines.push_back({Verdict::missing, kind, 0, e.of(kind), 0, {}, {}, {}});
  }
  for (const std::uint32_t kind : o.kinds) {
    if (o.of(kind) > 0) out.lines.push_back({Verdict::extra, 0, kind, 0, o.of(kind), {}, {}, {}});
  }
}

bool fits_in_order(const Catalog& catalog, const Sequence& e, const Sequence& o) {
  return e.size() == o.size() && std::equal(e.begin(), e.end(), o.begin(), [&](const Run& a, const Run& b) {
           return a.count == b.count && catalog.fits(a.kind, b.kind);
         });
}

/// The operations of kinds that are complete on both sides, in order. `left` has this side's leftovers, `others` the
/// other side's.
template <typename Fits>
Sequence complete(const Sequence& all, const Tally& left, const Tally& others, const Fits& fits) {
  std::unordered_map<std::uint32_t, bool> known;
  Sequence out;
  for (const Run& run : all) {
    const auto [at, fresh] = known.emplace(run.kind, left.of(run.kind) == 0);
    for (std::size_t i = 0; fresh && at->second && i < others.kinds.size(); ++i)
      at->second = others.of(others.kinds[i]) == 0 || !fits(run.kind, others.kinds[i]);
    if (at->second) out.push_back(run);
  }
  return out;
}

void order_line(const Catalog& catalog, const Sequence& e, const Sequence& o, Comparison& out) {
  const Sequence a = complete(e, out.left_expected, out.left_observed,
                              [&](std::uint32_t mine, std::uint32_t other) { return catalog.fits(mine, other); });
  const Sequence b = complete(o, out.left_observed, out.left_expected,
                              [&](std::uint32_t mine, std::uint32_t other) { return catalog.fits(other, mine); });
  const std::size_t both = std::min(a.size(), b.size());
  std::size_t at = 0;
  while (at < both && catalog.fits(a[at].kind, b[at].kind)) ++at;
  if (at == both) return;
  Line line{Verdict::order, a[at].kind, b[at].kind, 1, 1, {Field::order}, {}, {}};
  line.detail = fmt::format("operation {} of the step is {}; {} was expected there", at + 1, catalog.text(b[at].kind),
                            catalog.text(a[at].kind));
  out.lines.push_back(std::move(line));
}

}  // namespace

std::string_view name(Verdict verdict) noexcept {
  static constexpr std::array<std::string_view, 7> names = {"matched", "missing", "extra", "count",
                                                            "size",    "field",   "order"};
  return names[static_cast<std::size_t>(verdict)];
}

Tally::Tally(const Sequence& sequence) {
  for (const Run& run : sequence) {
    const auto [at, fresh] = counts.emplace(run.kind, 0);
    if (fresh) kinds.push_back(run.kind);
    at->second += run.count;
  }
}

std::size_t Comparison::differences() const {
  return static_cast<std::size_t>(
      std::count_if(lines.begin(), lines.end(), [](const Line& line) { return line.differs(); }));
}

Comparison compare(const Catalog& catalog, const Sequence& expected, const Sequence& observed, bool order) {
  Tally e(expected), o(observed);
  const Tally all = e;
  if (order && fits_in_order(catalog, expected, observed)) {
    Comparison out{{}, Tally({}), Tally({})};
    for (const std::uint32_t kind : all.kinds)
      out.lines.push_back({Verdict::matched, kind, kind, all.of(kind), all.of(kind), {}, {}, {}});
    return out;
  }
  const Pairs pairs = pair_up(catalog, e, o);
  Comparison out{{}, e, o};
  matched_lines(all, e, o, pairs, out);
  other_lines(catalog, e, o, out);
  if (order) order_line(catalog, expected, observed, out);
  std::stable_sort(out.lines.begin(), out.lines.end(),
                   [](const Line& a, const Line& b) { return a.differs() > b.differs(); });
  return out;
}

}  // namespace medley::reconcile
