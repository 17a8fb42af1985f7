// Making comms from comms: all members exchange their requests while the engine keeps making progress.
#include <medley/comm.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "comm/comm_terms.hpp"
#include "comm/context_state.hpp"

namespace medley {
namespace {

struct Bid {
  int color = 0;
  int key = 0;
  core::CommTerms terms;
};

/// Every member's request, by rank of the parent; operations of other comms progress meanwhile.
std::vector<Bid> exchange_bids(core::ContextState& context, core::CommState& parent, const std::string& name, const Bid& mine) {
  const auto texts = context.gather("bids/" + name, fmt::format("making a comm from {}", parent.name), parent.world_ranks,
                                    fmt::format("{} {} {}", mine.color, mine.key, mine.terms.text()),
                                    deadline_after(parent.deadline), &parent);
  std::vector<Bid> bids;
  for (const std::string& text : texts) {
    Bid bid;
    int terms_at = 0;
    sscanf(text.c_str(), "%d %d %n", &bid.color, &bid.key, &terms_at);
    bid.terms = core::CommTerms::from_text(text.substr(static_cast<std::size_t>(terms_at)));
    bids.push_back(std::move(bid));
  }
  return bids;
}

void compare_bids(const std::string& name, const std::vector<Bid>& bids, const std::vector<int>& members) {
  const int first = members.front();
  for (int r : members) {
    core::compare_terms(name, first, bids[static_cast<std::size_t>(first)].terms, r, bids[static_cast<std::size_t>(r)].terms);
  }
}

std::shared_ptr<core::ContextState> context_of(const core::CommState& comm) {
  auto context = comm.context.lock();
  if (!context) {
    throw Error(ErrorKind::invalid, fmt::format("comm {}: its context no longer exists", comm.name), {.comm = comm.name});
  }
  return context;
}

}  // namespace

Comm Comm::split(int color, int key, const CommOptions& options) {
  core::CommState& parent = state();
  parent.engine->refuse_forked_child();
  const auto context = context_of(parent);
  const Rules rules = Rules::parse(options.rules);
  const std::string name = fmt::format("{}/{}", parent.name, ++parent.children);
  const bool exact = options.exact.value_or(parent.exact);
  const std::vector<Bid> bids = exchange_bids(*context, parent, name, {color, key, {exact, options.fuse, rules.text()}});
  if (color < 0) return {};
  std::vector<int> members;
  for (int r = 0; r < parent.size; ++r) {
    if (bids[static_cast<std::size_t>(r)].color == color) members.push_back(r);
  }
  std::stable_sort(members.begin(), members.end(), [&](int a, int b) {
    return bids[static_cast<std::size_t>(a)].key < bids[static_cast<std::size_t>(b)].key;
  });
  std::vector<int> world_ranks;
  for (int r : members) world_ranks.push_back(parent.world_ranks[static_cast<std::size_t>(r)]);
  const std::string own_name = fmt::format("{}.{}", name, color);
  compare_bids(own_name, bids, members);
  return Comm(context->make_comm(own_name, world_ranks, rules, options.deadline.count() > 0 ? options.deadline : parent.deadline,
                                 {exact, options.fuse}));
}

Comm Comm::subset(std::span<const int> ranks, const CommOptions& options) {
  core::CommState& parent = state();
  std::vector<int> seen(static_cast<std::size_t>(parent.size), 0);
  for (int r : ranks) {
    if (r < 0 || r >= parent.size) {
      throw Error(ErrorKind::invalid, fmt::format("subset of comm {}: {} is not one of its ranks 0 to {}", parent.name, r,
                                                  parent.size - 1), {.comm = parent.name});
    }
    if (seen[static_cast<std::size_t>(r)]++) {
      throw Error(ErrorKind::invalid, fmt::format("subset of comm {}: rank {} is listed twice", parent.name, r),
                  {.comm = parent.name});
    }
  }
  if (ranks.empty()) {
    throw Error(ErrorKind::invalid, fmt::format("subset of comm {}: no ranks are listed", parent.name), {.comm = parent.name});
  }
  const auto place = std::find(ranks.begin(), ranks.end(), parent.rank);
  return split(place == ranks.end() ? -1 : 0, static_cast<int>(place - ranks.begin()), options);
}

Comm Comm::dup(const CommOptions& options) { return split(0, state().rank, options); }

}  // namespace medley
