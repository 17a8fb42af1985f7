#include "reconcile/kinds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace medley::reconcile {
namespace {

constexpr std::array<std::string_view, 6> phase_names = {"",         "forward",   "recompute",
                                                         "backward", "grad_sync", "optimizer"};
constexpr std::size_t most_notes = 4;  // per kind; a row with more reasons than that is not informative

void note(std::vector<std::string>& notes, const std::string& text) {
  if (text.empty() || notes.size() >= most_notes) return;
  if (std::find(notes.begin(), notes.end(), text) == notes.end()) notes.push_back(text);
}

/// Whether a size rounded to two decimals of a binary unit can be the expected one. Logs that round also lack groups
/// and print the shard of an all_gather.
bool rounds_to(const Kind& expected, std::size_t ranks, std::int64_t observed) {
  const double seen = static_cast<double>(observed), whole = static_cast<double>(expected.bytes);
  const auto near = [&](double given) {
    return std::abs(seen - given) <= 0.006 * std::exp2(10 * std::floor(std::log2(std::max(1.0, given)) / 10));
  };
  if (near(whole)) return true;
  if (expected.op != Op::all_gather) return false;
  return near(whole / static_cast<double>(std::max<std::size_t>(1, ranks))) || std::abs(seen - whole) <= 1e-2 * whole;
}

}  // namespace

std::uint8_t phase_number(std::string_view phase) noexcept {
  const auto found = std::find(phase_names.begin(), phase_names.end(), phase);
  return found == phase_names.end() ? 0 : static_cast<std::uint8_t>(found - phase_names.begin());
}

std::string_view phase_name(std::uint8_t number) noexcept { return phase_names[number]; }

void normalise(Kind& kind, Fields ignored) {
  const bool message = !is_collective(kind.op);
  const auto clear = [&](Field field, auto&& reset) {
    reset();
    kind.unknown.remove(field);
  };
  if (!reduces(kind.op) || kind.unknown.has(Field::reduce)) kind.reduce = ReduceOp::sum;
  if (!reduces(kind.op)) kind.unknown.remove(Field::reduce);
  if (!rooted(kind.op) && !message) clear(Field::root, [&] { kind.root = -1; });
  if (message) clear(Field::group, [&] { kind.group = 0; });
  if (kind.op == Op::barrier) {
    clear(Field::dtype, [&] { kind.dtype = DType::u8; });
    clear(Field::bytes, [&] { kind.bytes = 0; });
    kind.unknown.remove(Field::rounding);
  }
  if (ignored.has(Field::dtype)) clear(Field::dtype, [&] { kind.dtype = DType::u8; });
  if (ignored.has(Field::reduce)) clear(Field::reduce, [&] { kind.reduce = ReduceOp::sum; });
  if (ignored.has(Field::root)) clear(Field::root, [&] { kind.root = -1; });
  if (ignored.has(Field::phase)) clear(Field::phase, [&] { kind.phase = 0; });
  if (ignored.has(Field::async)) clear(Field::async, [&] { kind.async = false; });
  if (ignored.has(Field::group)) clear(Field::group, [&] { kind.group = 0; });
  kind.unknown.remove(Field::order);  // a property of a sequence, not of an operation
}

std::size_t Catalog::Hash::operator()(const Kind& k) const noexcept {
  std::uint64_t h = 1469598103934665603ull;
  for (const std::uint64_t part :
       {std::uint64_t(k.op), std::uint64_t(k.dtype), std::uint64_t(k.reduce), std::uint64_t{k.phase},
        std::uint64_t{k.async}, std::uint64_t{k.group}, static_cast<std::uint64_t>(k.root),
        static_cast<std::uint64_t>(k.bytes), std::uint64_t{k.unknown.bits()}}) {
    h = (h ^ part) * 1099511628211ull;
  }
  return h ^ (h >> 29);
}

std::uint32_t Catalog::group(std::vector<int> ranks, const std::string& name) {
  std::sort(ranks.begin(), ranks.end());
  const auto [at, fresh] = group_numbers_.emplace(std::pair(ranks, ranks.empty() ? name : std::string()),
                                                  static_cast<std::uint32_t>(groups_.size()));
  if (fresh) groups_.push_back({name, std::move(ranks)});
  return at->second;
}

std::uint32_t Catalog::kind(const Kind& kind) {
  const auto [at, fresh] = numbers_.emplace(kind, static_cast<std::uint32_t>(kinds_.size()));
  if (fresh) kinds_.push_back(kind);
  return at->second;
}

void Catalog::note_reason(std::uint32_t kind, const std::string& why) { note(reasons_[kind], why); }
void Catalog::note_place(std::uint32_t kind, const std::string& module) { note(places_[kind], module); }
std::vector<std::string> Catalog::reasons(std::uint32_t kind) const {
  const auto found = reasons_.find(kind);
  return found == reasons_.end() ? std::vector<std::string>{} : found->second;
}
std::vector<std::string> Catalog::places(std::uint32_t kind) const {
  const auto found = places_.find(kind);
  return found == places_.end() ? std::vector<std::string>{} : found->second;
}

std::string Catalog::text(std::uint32_t number) const {
  const Kind& k = kinds_[number];
  std::string out(name(k.op));
  if (k.op != Op::barrier) {
    out += fmt::format(" of {} B", k.bytes);
    if (!k.unknown.has(Field::dtype)) out += fmt::format(" {}", name(k.dtype));
  }
  if (reduces(k.op) && !k.unknown.has(Field::reduce)) out += fmt::format(" {}", name(k.reduce));
  if (k.root >= 0) {
    const char* word = k.op == Op::send ? "to" : k.op == Op::recv ? "from" : "with root";
    out += fmt::format(" {} {}", word, k.root);
  }
  if (k.group != 0) out += fmt::format(" on {}", groups_[k.group].name);
  return out;
}

bool Catalog::same(Field field, const Kind& e, const Kind& o) const {
  if (field == Field::bytes && o.unknown.has(Field::rounding) && !o.unknown.has(Field::bytes))
    return rounds_to(e, groups_[e.group].ranks.size(), o.bytes);
  if (e.unknown.has(field) || o.unknown.has(field)) return true;
  switch (field) {
    case Field::group: return e.group == o.group;
    case Field::bytes: return e.bytes == o.bytes;
    case Field::dtype: return e.dtype == o.dtype;
    case Field::reduce: return e.reduce == o.reduce;
    case Field::root: return e.root == o.root;
    case Field::phase: return e.phase == o.phase;
    case Field::async: return e.async == o.async;
    case Field::order:
    case Field::rounding: return true;
  }
  return false;
}

bool Catalog::fits(std::uint32_t expected, std::uint32_t observed) const {
  if (expected == observed) return true;
  const Kind &e = kinds_[expected], &o = kinds_[observed];
  if (e.op != o.op || (e.unknown.empty() && o.unknown.empty())) return false;
  return differing(expected, observed).empty();
}

std::vector<Field> Catalog::differing(std::uint32_t expected, std::uint32_t observed) const {
  std::vector<Field> out;
  for (int i = 0; i < trace::field_count; ++i) {
    const auto field = static_cast<Field>(i);
    if (!same(field, kinds_[expected], kinds_[observed])) out.push_back(field);
  }
  return out;
}

}  // namespace medley::reconcile
