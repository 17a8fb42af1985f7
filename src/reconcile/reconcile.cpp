#include "reconcile/reconcile.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace medley::reconcile {
namespace {

/// Sources without groups fit any.
bool same_group(const Item& expected, const Item& observed) {
  return !is_collective(expected.op) || observed.ranks.empty() || expected.ranks == observed.ranks;
}

/// Exact, except for sources that round to two decimals and know no groups.
bool same_size(const Item& expected, const Item& observed) {
  if (expected.bytes == observed.bytes) return true;
  if (!observed.ranks.empty() || !is_collective(observed.op)) return false;
  const auto near = [&](double given) {
    const double seen = static_cast<double>(observed.bytes);
    return std::abs(seen - given) <= 0.006 * std::exp2(10 * std::floor(std::log2(std::max(1.0, given)) / 10));
  };
  const double whole = static_cast<double>(expected.bytes),
               ranks = static_cast<double>(std::max<std::size_t>(1, expected.ranks.size()));
  // A shard of an all_gather, or a whole that was made of a rounded shard.
  return near(whole) ||
         (expected.op == Op::all_gather &&
          (near(whole / ranks) || std::abs(static_cast<double>(observed.bytes) - whole) <= 1e-2 * whole));
}

struct Sides {
  std::vector<Item> expected, observed;
};

/// Takes pairs out of both sides as long as `fits` finds some.
template <typename Fits>
void pair_up(Sides& sides, Result& result, const Fits& fits, Verdict verdict) {
  for (auto e = sides.expected.begin(); e != sides.expected.end();) {
    const auto o = std::find_if(sides.observed.begin(), sides.observed.end(),
                                [&](const Item& item) { return fits(*e, item); });
    if (o == sides.observed.end()) {
      ++e;
      continue;
    }
    const bool same = verdict == Verdict::count && e->count == o->count;
    result.lines.push_back({same ? Verdict::matched : verdict, *e, *o, ""});
    sides.observed.erase(o);
    e = sides.expected.erase(e);
  }
}

}  // namespace

std::string_view name(Verdict verdict) noexcept {
  static constexpr std::array<std::string_view, 5> names = {"matched", "missing", "extra", "count", "size"};
  return names[static_cast<std::size_t>(verdict)];
}

std::size_t Result::differences() const {
  return static_cast<std::size_t>(
      std::count_if(lines.begin(), lines.end(), [](const Line& l) { return l.verdict != Verdict::matched; }));
}

std::size_t Result::unexplained() const {
  return static_cast<std::size_t>(std::count_if(lines.begin(), lines.end(), [](const Line& l) {
    return l.verdict != Verdict::matched && l.cause.empty();
  }));
}

Result compare(const Items& expected, const Items& observed, int rank) {
  Result result;
  result.rank = rank;
  Sides sides{expected, observed};
  std::erase_if(sides.expected, [](const Item& item) { return item.ranks.size() == 1; });
  // The same in everything but perhaps how often; then the same but for the size; what is left has no
  // partner.
  pair_up(
      sides, result,
      [](const Item& e, const Item& o) { return e.op == o.op && same_group(e, o) && same_size(e, o); },
      Verdict::count);
  pair_up(
      sides, result,
      [](const Item& e, const Item& o) { return e.op == o.op && same_group(e, o) && e.count == o.count; },
      Verdict::size);
  for (Item& item : sides.expected) result.lines.push_back({Verdict::missing, std::move(item), {}, ""});
  for (Item& item : sides.observed) result.lines.push_back({Verdict::extra, {}, std::move(item), ""});
  std::stable_sort(result.lines.begin(), result.lines.end(), [](const Line& a, const Line& b) {
    return (a.verdict == Verdict::matched) < (b.verdict == Verdict::matched);
  });
  return result;
}

}  // namespace medley::reconcile
