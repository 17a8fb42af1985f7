// Rules of thumb for differences that no switch of the plan explains.
#include <fmt/format.h>

#include <algorithm>

#include "reconcile/causes.hpp"

namespace medley::reconcile {
namespace {

/// The side that is there.
const Item& seen(const Line& line) {
  return line.observed.count > 0 ? line.observed : line.expected;
}

std::string barriers(const Line& line, const Result&) {
  return line.verdict == Verdict::extra && line.observed.op == Op::barrier
             ? "a barrier of the program's own; it moves no bytes"
             : "";
}

std::string other_groups(const Line& line, const Result& all) {
  if (line.verdict != Verdict::extra || line.observed.ranks.empty()) return "";
  const bool known = std::any_of(all.lines.begin(), all.lines.end(), [&](const Line& l) {
    return l.expected.count > 0 && l.expected.ranks == line.observed.ranks;
  });
  return known ? ""
               : fmt::format(
                     "comm {} is none of the layout's groups: the ranks are grouped in another order, or it "
                     "serves something else",
                     line.observed.group);
}

std::string scalars(const Line& line, const Result&) {
  const bool small =
      line.verdict == Verdict::extra && line.observed.bytes <= 64 && line.observed.op != Op::send;
  return small ? "a scalar of the program's own: a loss to log, a norm, a flag" : "";
}

/// The same volume of one operation and group in other pieces.
std::string other_buckets(const Line& line, const Result& all) {
  std::int64_t expected = 0, observed = 0;
  for (const Line& l : all.lines) {
    const bool same =
        seen(l).op == seen(line).op && seen(l).ranks == seen(line).ranks && l.verdict != Verdict::matched;
    if (!same) continue;
    expected += l.expected.bytes * l.expected.count;
    observed += l.observed.bytes * l.observed.count;
  }
  return expected == observed && expected > 0
             ? "the same bytes in other pieces: the bucket size is another than planned"
             : "";
}

std::string padding(const Line& line, const Result&) {
  if (line.verdict != Verdict::size || line.observed.bytes <= line.expected.bytes) return "";
  const auto n = static_cast<std::int64_t>(std::max<std::size_t>(1, line.expected.ranks.size()));
  const std::int64_t more = line.observed.bytes - line.expected.bytes;
  const bool fits =
      line.observed.bytes % n == 0 && more < std::max<std::int64_t>(128 * n * 8, line.expected.bytes / 1000);
  return fits ? "tensors are padded so that they divide evenly among the ranks" : "";
}

std::string other_dtype(const Line& line, const Result&) {
  if (line.verdict != Verdict::size) return "";
  const std::int64_t e = line.expected.bytes, o = line.observed.bytes;
  if (o == 2 * e || o == 4 * e || e == 2 * o || e == 4 * o) {
    return fmt::format("elements are {} where {} was planned", medley::name(line.observed.dtype),
                       medley::name(line.expected.dtype));
  }
  return "";
}

std::string uneven_parts(const Line& line, const Result&) {
  return line.observed.uneven && line.observed.op == Op::all_to_all
             ? "tokens are routed unevenly; the plan has the even share"
             : "";
}

std::string other_batches(const Line& line, const Result&) {
  if (line.verdict != Verdict::count) return "";
  const std::int64_t e = line.expected.count, o = line.observed.count;
  if (o % e == 0)
    return fmt::format("{} times as often as planned: micro-batches, or layers, are more", o / e);
  if (e % o == 0)
    return fmt::format("a {}th as often as planned: micro-batches, or layers, are fewer", e / o);
  return "";
}

}  // namespace

const std::vector<Rule>& rules() {
  static const std::vector<Rule> all = {barriers,      uneven_parts, other_dtype,  padding,
                                        other_buckets, scalars,      other_groups, other_batches};
  return all;
}

}  // namespace medley::reconcile
