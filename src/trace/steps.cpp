#include "trace/steps.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <medley/error.hpp>

namespace medley::trace {
namespace {

// A run ends with a few extra operations: a barrier, a last loss. A longer tail is not the end of a run.
constexpr std::size_t longest_tail = 64;
constexpr std::size_t most_keys = std::size_t{1} << 20;  // the last steps tell as much as all

/// z[i]: how many keys from i on equal the keys from the start.
std::vector<std::size_t> matches(const std::vector<std::uint64_t>& keys) {
  std::vector<std::size_t> z(keys.size(), 0);
  for (std::size_t i = 1, left = 0, right = 0; i < keys.size(); ++i) {
    if (i < right) z[i] = std::min(right - i, z[i - left]);
    while (i + z[i] < keys.size() && keys[z[i]] == keys[i + z[i]]) ++z[i];
    if (i + z[i] > right) {
      left = i;
      right = i + z[i];
    }
  }
  return z;
}

std::uint64_t kind_key(const Event& event) {
  std::uint64_t key = 1469598103934665603ull;
  for (std::uint64_t part : {std::uint64_t(event.op), std::uint64_t{event.group}, std::uint64_t(event.bytes),
                             std::uint64_t(event.dtype), std::uint64_t{event.scope}}) {
    key = (key ^ part) * 1099511628211ull;
  }
  return key;
}

struct Keys {
  std::vector<std::uint64_t> keys;
  std::vector<std::size_t> places;
  struct Border {
    std::vector<std::uint64_t> keys;
    std::size_t first = 0, last = 0;  ///< events
  };
  std::vector<Border> borders;  ///< events under the scope "step" with nothing between them
};

Keys read_keys(const Trace& trace, const RankTrace& rank) {
  Keys out;
  Event event;
  for (std::size_t i = 0; i < rank.events->size(); ++i) {
    if (!rank.events->read(i, event)) continue;
    if (trace.names[event.scope] == step_scope) {
      const bool goes_on = !out.borders.empty() && (out.places.empty() || out.places.back() < out.borders.back().first);
      if (!goes_on) out.borders.push_back({{}, i, i});
      out.borders.back().keys.push_back(kind_key(event));
      out.borders.back().last = i;
    } else {
      out.keys.push_back(kind_key(event));
      out.places.push_back(i);
    }
  }
  return out;
}

/// How often `part` follows itself in `whole`; 0 where `whole` is something else.
std::size_t repetitions(const std::vector<std::uint64_t>& whole, const std::vector<std::uint64_t>& part) {
  if (part.empty() || whole.size() % part.size() != 0) return 0;
  for (std::size_t i = 0; i < whole.size(); ++i)
    if (whole[i] != part[i % part.size()]) return 0;
  return whole.size() / part.size();
}

/// A program separates its steps by always the same operations. Where they come twice in a row, they enclose a step
/// that issued nothing. It counts: a step that forgot its gradients must not look like one that never ran.
Steps by_borders(const Keys& keys, const RankTrace& rank) {
  Steps out{{}, "scope"};
  const auto& borders = keys.borders;
  // A border at either end may be incomplete: a ring cuts the first, a kill the last.
  std::size_t from = 0, to = borders.size();
  const std::size_t end = rank.events->size();
  if (to > 1 && rank.issued > static_cast<std::int64_t>(end)) ++from;
  if (to - from > 1 && keys.places.back() < borders.back().first) --to;
  const auto shortest = std::min_element(borders.begin() + static_cast<std::ptrdiff_t>(from),
                                         borders.begin() + static_cast<std::ptrdiff_t>(to),
                                         [](const auto& a, const auto& b) { return a.keys.size() < b.keys.size(); });
  for (std::size_t i = 0; i < borders.size(); ++i) {
    const Step step{borders[i].last + 1, i + 1 < borders.size() ? borders[i + 1].first : end};
    for (std::size_t n = repetitions(borders[i].keys, shortest->keys); n > 1; --n)
      out.steps.push_back({step.begin, step.begin});
    const auto inside = std::lower_bound(keys.places.begin(), keys.places.end(), step.begin);
    if (inside != keys.places.end() && *inside < step.end) out.steps.push_back(step);
  }
  return out;
}

Steps equal_steps(const Keys& keys, std::size_t begin, std::size_t length, std::size_t count, const char* how) {
  Steps out{{}, how};
  for (std::size_t s = 0; s < count; ++s) {
    const std::size_t first = begin + s * length;
    out.steps.push_back({keys.places[first], keys.places[first + length - 1] + 1});
  }
  return out;
}

}  // namespace

Period find_period(const std::vector<std::uint64_t>& keys) {
  Period best;
  const std::size_t kept = std::min(keys.size(), most_keys), skipped = keys.size() - kept;
  for (std::size_t tail = 0; tail < longest_tail && tail + 2 <= kept; ++tail) {
    // Backwards, because the set-up at the start does not repeat: the equal steps extend to the end.
    std::vector<std::uint64_t> backwards(keys.rbegin() + static_cast<std::ptrdiff_t>(tail),
                                         keys.rend() - static_cast<std::ptrdiff_t>(skipped));
    const std::vector<std::size_t> z = matches(backwards);
    for (std::size_t p = 1; p < z.size(); ++p) {
      const std::size_t covered = p + z[p];
      if (z[p] < p || covered <= best.end - best.begin) continue;
      best = {p, keys.size() - tail - covered, keys.size() - tail};
    }
    if (best.length > 0 && best.end - best.begin >= (kept - tail) / 2) break;  // no later tail can be better
    if (kept > (std::size_t{1} << 16) && best.length == 0 && tail > 4) break;
  }
  if (best.length == 0 || best.end - best.begin < kept / 2) return {};
  return best;
}

Steps find_steps(const Trace& trace, const RankTrace& rank, std::size_t given) {
  const Keys keys = read_keys(trace, rank);
  const Steps whole{{{0, rank.events->size()}}, "nothing"};
  if (given > 0) {
    if (given > keys.keys.size() && given > 1) {
      throw Error(ErrorKind::invalid,
                  fmt::format("--steps {}: rank {} has only {} operations", given, rank.rank, keys.keys.size()));
    }
    if (given == 1 || keys.keys.empty()) return {{{0, rank.events->size()}}, "count"};
    const std::size_t length = keys.keys.size() / given;
    const Period period = find_period(keys.keys);
    if (period.length > 0 && (period.end - period.begin) / period.length >= given) {
      // Equal layers repeat within a step: it may be several periods long.
      const std::size_t periods = (period.end - period.begin) / period.length;
      const std::size_t each = periods % given == 0 ? periods / given * period.length : period.length;
      return equal_steps(keys, period.end - given * each, each, given, "count");
    }
    return equal_steps(keys, keys.keys.size() - given * length, length, given, "count");
  }
  const bool marked = !keys.borders.empty() && !keys.places.empty() && keys.places.back() > keys.borders.front().first;
  if (marked) return by_borders(keys, rank);
  if (!rank.marked_steps.empty()) {
    Steps steps{{}, "mark"};
    for (const auto& [begin, end] : rank.marked_steps) steps.steps.push_back({begin, end});
    return steps;
  }
  const Period period = find_period(keys.keys);
  if (period.length == 0) return whole;
  const std::size_t count = (period.end - period.begin) / period.length;
  return equal_steps(keys, period.end - count * period.length, period.length, count, "period");
}

double step_period_us(const RankTrace& rank, const Steps& steps) {
  std::vector<double> starts, periods;
  Event event;
  for (const Step& step : steps.steps)
    if (step.begin < step.end && rank.read(step.begin, event) && event.issued >= 0) starts.push_back(event.issued);
  for (std::size_t i = 1; i < starts.size(); ++i) periods.push_back((starts[i] - starts[i - 1]) / 1e3);
  if (periods.empty()) return 0;
  const auto middle = periods.begin() + static_cast<std::ptrdiff_t>(periods.size() / 2);
  std::nth_element(periods.begin(), middle, periods.end());
  return *middle;
}

}  // namespace medley::trace
