#include "trace/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <medley/error.hpp>
#include <unordered_map>

#include "base/wire_bytes.hpp"

namespace medley::trace {
namespace {

struct Key {
  Op op;
  DType dtype;
  std::uint32_t group, scope, backend, algorithm;
  std::int64_t bytes;
  bool sized;
  bool operator==(const Key&) const = default;
};
struct Hash {
  std::size_t operator()(const Key& k) const noexcept {
    std::uint64_t h = (std::uint64_t(k.op) << 8 | std::uint64_t(k.dtype)) * 0x9e3779b97f4a7c15ull;
    h = (h ^ k.group) * 0x9e3779b97f4a7c15ull;
    h = (h ^ (std::uint64_t{k.scope} << 32 | k.backend << 8 | k.algorithm)) * 0x9e3779b97f4a7c15ull;
    h = (h ^ static_cast<std::uint64_t>(k.bytes)) * 0x9e3779b97f4a7c15ull;
    return h ^ (h >> 32);
  }
};

/// Durations in a histogram of 16 bins per doubling: quantiles within 4.5 % for any number of operations.
class Durations {
 public:
  void add(const Event& event) {
    const double ns = event.duration();
    const std::int64_t count = event.count;
    const int bin = ns < 1 ? 0 : std::min(bins - 1, static_cast<int>(std::log2(ns) * 16) + 1);
    counts_[static_cast<std::size_t>(bin)] += count;
    n_ += count;
    total_ += ns * static_cast<double>(count);
    exposed_ += event.exposed * static_cast<double>(count);
    exposed_known_ = exposed_known_ && event.exposed_known;
    if (n_ == count) least_ = most_ = ns;
    least_ = std::min(least_, ns);
    most_ = std::max(most_, ns);
  }
  double quantile(double share) const {
    std::int64_t before = 0;
    for (std::size_t bin = 0; bin < counts_.size(); ++bin) {
      before += counts_[bin];
      if (static_cast<double>(before) >= share * static_cast<double>(n_) && before > 0) {
        const double middle = bin == 0 ? 0 : std::exp2((static_cast<double>(bin) - 0.5) / 16);
        return std::clamp(middle, least_, most_);
      }
    }
    return most_;
  }
  std::int64_t count() const { return n_; }
  double total() const { return total_; }
  double exposed() const { return exposed_; }
  bool exposed_known() const { return exposed_known_; }

 private:
  static constexpr int bins = 16 * 48;  // up to 78 hours
  std::vector<std::int64_t> counts_ = std::vector<std::int64_t>(bins, 0);
  std::int64_t n_ = 0;
  double total_ = 0, exposed_ = 0, least_ = 0, most_ = 0;
  bool exposed_known_ = true;
};

struct Reading {
  std::unordered_map<Key, std::size_t, Hash> numbers;
  std::vector<Key> keys;
  std::vector<Durations> times;
  std::vector<std::vector<std::pair<std::size_t, std::int64_t>>> steps;  ///< key and count, by step
  std::vector<double> step_us;
};

/// Operations of one key per step, in order of first issue.
void read_step(const Trace& trace, const RankTrace& rank, const Step& step, Reading& out) {
  std::vector<std::pair<std::size_t, std::int64_t>> seen;
  std::unordered_map<std::size_t, std::size_t> where;
  double first = -1, last = -1;
  Event event;
  for (std::size_t i = step.begin; i < step.end; ++i) {
    if (!rank.events->read(i, event) || trace.names[event.scope] == step_scope) continue;
    const Key key{event.op,      event.dtype,     event.group, event.scope,
                  event.backend, event.algorithm, event.bytes, !event.unknown.has(Field::bytes)};
    const auto [number, fresh] = out.numbers.emplace(key, out.keys.size());
    if (fresh) {
      out.keys.push_back(key);
      out.times.emplace_back();
    }
    const auto [place, new_here] = where.emplace(number->second, seen.size());
    if (new_here) seen.emplace_back(number->second, 0);
    seen[place->second].second += event.count;
    if (event.completed >= 0) out.times[number->second].add(event);
    if (first < 0) first = event.issued;
    last = std::max(last, event.completed);
  }
  if (last > first) out.step_us.push_back((last - first) / 1e3);
  out.steps.push_back(std::move(seen));
}

/// The step that most other steps equal.
std::size_t typical_of(const std::vector<std::vector<std::pair<std::size_t, std::int64_t>>>& steps,
                       std::size_t& unlike) {
  std::map<std::vector<std::pair<std::size_t, std::int64_t>>, std::pair<std::size_t, std::size_t>> kinds;
  for (std::size_t s = 0; s < steps.size(); ++s) {
    auto sorted = steps[s];
    std::sort(sorted.begin(), sorted.end());
    auto& [times, first] = kinds[sorted];
    if (times++ == 0) first = s;
  }
  std::size_t best = 0, most = 0;
  for (const auto& [step, kind] : kinds) {
    if (kind.first > most || (kind.first == most && kind.second < best)) {
      most = kind.first;
      best = kind.second;
    }
  }
  unlike = steps.size() - most;
  return best;
}

}  // namespace

double Summary::wire(const Row& row, const Trace& trace) const {
  return core::wire_bytes(row.op, row.bytes, std::max(1, trace.groups[row.group].size)) *
         static_cast<double>(row.count);
}

Summary summarise(const Trace& trace, const RankTrace& rank, const Steps& steps, std::size_t step) {
  if (step > steps.steps.size()) {
    throw Error(ErrorKind::invalid, fmt::format("--step {}: rank {} has {} step{}", step, rank.rank, steps.steps.size(),
                                                steps.steps.size() == 1 ? "" : "s"));
  }
  Reading reading;
  for (const Step& part : steps.steps) read_step(trace, rank, part, reading);
  Summary out;
  out.rank = rank.rank;
  out.steps = steps;
  if (reading.steps.empty()) return out;
  out.typical = typical_of(reading.steps, out.unlike);
  if (step > 0) out.typical = step - 1;
  for (const auto& [number, in_step] : reading.steps[out.typical]) {
    const Key& key = reading.keys[number];
    const Durations& times = reading.times[number];
    const ScopeParts scope = parts_of_scope(trace.names[key.scope]);
    Row row{key.op,
            key.group,
            key.bytes,
            in_step,
            key.dtype,
            key.sized,
            std::string(scope.phase),
            std::string(scope.module),
            trace.names[key.backend],
            trace.names[key.algorithm]};
    row.timed = times.count();
    row.exposed_known = trace.waits_known && times.exposed_known();
    if (row.timed > 0) {
      const double each = static_cast<double>(in_step) / static_cast<double>(row.timed) / 1e3;
      row.total_us = times.total() * each;
      row.exposed_us = times.exposed() * each;
      row.median_us = times.quantile(0.5) / 1e3;
      row.p99_us = times.quantile(0.99) / 1e3;
    }
    out.rows.push_back(std::move(row));
  }
  if (!reading.step_us.empty()) {
    auto& all = reading.step_us;
    std::nth_element(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2), all.end());
    out.step_us = all[all.size() / 2];
  }
  return out;
}

const RankTrace& busiest(const Trace& trace) {
  if (trace.ranks.empty()) throw Error(ErrorKind::invalid, trace.source + ": no rank recorded anything");
  const RankTrace* best = &trace.ranks.front();
  double most = -1;
  for (const RankTrace& rank : trace.ranks) {
    double wire = 0;
    Event event;
    for (std::size_t i = 0; i < rank.events->size(); ++i) {
      if (!rank.events->read(i, event)) continue;
      wire += core::wire_bytes(event.op, event.bytes, std::max(1, trace.groups[event.group].size)) *
              static_cast<double>(event.count);
    }
    if (wire > most * (1 + 1e-12)) {
      most = wire;
      best = &rank;
    }
  }
  return *best;
}

}  // namespace medley::trace
