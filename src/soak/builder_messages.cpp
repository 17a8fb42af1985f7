// Random messages: pairs, rings, many pairs at once, and receives from any source.
#include <algorithm>

#include "soak/builder.hpp"

namespace medley::soak {
namespace {

// Tags of messages that may queue behind one another. Each backend has its own, and so has the comm's own
// choice.
constexpr int tags_per_route = 3;
// Above those, a unique tag for each step that receives from any source, so that it takes no other step's
// message.
constexpr int first_unique_tag = 1000;

}  // namespace

bool Builder::add_messages(Step& step, const Section& section) {
  step.kind = Kind::messages;
  step.dtype = static_cast<DType>(random_.below(dtype_count));
  choose_route(step);
  const int n = size_of_comm(step.comm);
  const bool exact = program_.comm(step.comm).exact;
  const auto route = static_cast<int>(std::find(options_.backends.begin(), options_.backends.end(), step.backend) -
                                      options_.backends.begin());
  const int tag = route * tags_per_route + random_.between(0, tags_per_route - 1);
  std::vector<std::pair<int, int>> pairs;
  const std::int64_t dice = random_.below(10);
  if (dice < 6) {
    const int from = random_.between(0, n - 1);
    // A rank sends to itself only when both ends are one call; as two calls they would need an order of their
    // own.
    pairs.push_back({from, n == 1 ? from : (from + random_.between(1, n - 1)) % n});
  } else if (dice < 8) {
    const int shift = n == 1 ? 0 : random_.between(1, n - 1);
    for (int r = 0; r < n; ++r) pairs.push_back({r, (r + shift) % n});
  } else {
    for (int i = random_.between(1, 2 * n); i > 0; --i)
      pairs.push_back({random_.between(0, n - 1), random_.between(0, n - 1)});
  }
  // A rank's messages do not overlap, so its memory limits how large they can be.
  const auto element = static_cast<std::int64_t>(size_of(step.dtype));
  const std::int64_t most = (section.end - section.begin) / element / static_cast<std::int64_t>(4 * pairs.size());
  for (const auto& [from, to] : pairs) {
    const std::int64_t count = count_up_to(most);
    const std::int64_t room =
        count +
        (!over_nccl(step) && !exact && random_.chance(15) ? random_.below(std::max<std::int64_t>(most / 4, 1)) : 0);
    step.packets.push_back({from, to, tag, count, 0, 0, room});
  }
  for (int r = 0; r < n; ++r) {
    std::vector<std::int64_t> counts;
    std::vector<std::int64_t*> places;
    for (Packet& p : step.packets) {
      if (p.from == r) counts.push_back(p.count), places.push_back(&p.from_at);
      if (p.to == r) counts.push_back(p.room), places.push_back(&p.to_at);
    }
    const auto at = place_apart(counts, step.dtype, section);
    for (std::size_t i = 0; i < at.size(); ++i) *places[i] = at[i];
  }
  if (!over_nccl(step) && may_take_any_source(step) && pairs.size() == 1 && pairs[0].first != pairs[0].second &&
      random_.chance(15)) {
    step.packets[0].any_source = true;
    step.packets[0].tag = first_unique_tag + static_cast<int>(program_.steps.size());
  }
  return true;
}

/// Where messages have exact sizes they may take several routes, so that a receive from any source must name one.
bool Builder::may_take_any_source(const Step& step) const {
  return !step.backend.empty() || !program_.comm(step.comm).exact;
}

bool Builder::add_any_source(Step& step, const Section& section) {
  const int n = size_of_comm(step.comm);
  if (n < 2) return false;
  step.kind = Kind::any_source;
  step.dtype = static_cast<DType>(random_.below(dtype_count));
  choose_route(step);
  if (over_nccl(step) || !may_take_any_source(step)) return false;
  const int to = random_.between(0, n - 1), tag = first_unique_tag + static_cast<int>(program_.steps.size());
  const int packets = random_.between(1, 2 * (n - 1));
  const auto element = static_cast<std::int64_t>(size_of(step.dtype));
  const std::int64_t most = (section.end - section.begin) / element / (4 * packets);
  const std::int64_t count = count_up_to(most);  // the same for all, because any of them may arrive first
  std::vector<std::int64_t> counts(static_cast<std::size_t>(packets), count);
  const auto to_at = place_apart(counts, step.dtype, section);
  for (int i = 0; i < packets; ++i) {
    const int from = (to + random_.between(1, n - 1)) % n;
    step.packets.push_back({from, to, tag, count, place_apart({count}, step.dtype, section)[0],
                            to_at[static_cast<std::size_t>(i)], count, true});
  }
  return true;
}

}  // namespace medley::soak
