// Making comms from comms: all members exchange their requests while the engine keeps making progress.
#include <medley/comm.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "comm/comm_terms.hpp"
#include "comm/context_state.hpp"

namespace medley {
namespace {

struct SplitRequest {
  int color = 0;
  int key = 0;
  core::CommTerms terms;

  std::string text() const { return fmt::format("{} {} {}", color, key, terms.text()); }
  /// Of what text() gave; null for anything else.
  static std::optional<SplitRequest> from_text(std::string_view text) {
    const auto take_number = [&text](int& number) {  // and the space behind it
      const char* const limit = text.data() + text.size();
      const auto [end, error] = std::from_chars(text.data(), limit, number);
      if (error != std::errc{} || end == limit || *end != ' ') return false;
      text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
      return true;
    };
    SplitRequest request;
    if (!take_number(request.color) || !take_number(request.key)) return std::nullopt;
    request.terms = core::CommTerms::from_text(std::string(text));
    return request;
  }
};

/// Every member's request, by rank of the parent; operations of other comms progress meanwhile.
std::vector<SplitRequest> exchange_requests(core::ContextState& context, core::CommState& parent,
                                            const std::string& name, const SplitRequest& mine) {
  const auto texts = context.gather("bids/" + name, fmt::format("making a comm from {}", parent.name),
                                    parent.world_ranks, mine.text(), deadline_after(parent.deadline), &parent);
  std::vector<SplitRequest> requests;
  for (const std::string& text : texts) {
    auto request = SplitRequest::from_text(text);
    if (!request) {
      throw Error(
          ErrorKind::mismatch,
          fmt::format(
              "making a comm from {}: rank {} sent \"{}\", which this version of Medley does not understand; use one version "
              "on all ranks",
              parent.name, requests.size(), text),
          {.comm = parent.name, .ranks = {static_cast<int>(requests.size())}});
    }
    requests.push_back(*std::move(request));
  }
  return requests;
}

void compare_requests(const std::string& name, const std::vector<SplitRequest>& requests,
                      const std::vector<int>& members) {
  const int first = members.front();
  for (int r : members) {
    core::compare_terms(name, first, requests[static_cast<std::size_t>(first)].terms, r,
                        requests[static_cast<std::size_t>(r)].terms);
  }
}

std::shared_ptr<core::ContextState> context_of(const core::CommState& comm) {
  auto context = comm.context.lock();
  if (!context) {
    throw Error(ErrorKind::invalid, fmt::format("comm {}: its context no longer exists", comm.name),
                {.comm = comm.name});
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
  const core::CommTraits traits{options.exact.value_or(parent.exact), options.fuse};
  const std::vector<SplitRequest> requests =
      exchange_requests(*context, parent, name, {color, key, {traits, rules.text()}});
  if (color < 0) return {};
  std::vector<int> members;
  for (int r = 0; r < parent.size; ++r) {
    if (requests[static_cast<std::size_t>(r)].color == color) members.push_back(r);
  }
  std::stable_sort(members.begin(), members.end(), [&](int a, int b) {
    return requests[static_cast<std::size_t>(a)].key < requests[static_cast<std::size_t>(b)].key;
  });
  std::vector<int> world_ranks;
  for (int r : members) world_ranks.push_back(parent.world_ranks[static_cast<std::size_t>(r)]);
  const std::string own_name = fmt::format("{}.{}", name, color);
  compare_requests(own_name, requests, members);
  return Comm(context->make_comm(own_name, world_ranks, rules,
                                 options.deadline.count() > 0 ? options.deadline : parent.deadline, traits));
}

Comm Comm::subset(std::span<const int> ranks, const CommOptions& options) {
  core::CommState& parent = state();
  std::vector<int> seen(static_cast<std::size_t>(parent.size), 0);
  for (int r : ranks) {
    if (r < 0 || r >= parent.size) {
      throw Error(ErrorKind::invalid,
                  fmt::format("subset of comm {}: {} is not one of its ranks 0 to {}", parent.name, r, parent.size - 1),
                  {.comm = parent.name});
    }
    if (seen[static_cast<std::size_t>(r)]++) {
      throw Error(ErrorKind::invalid, fmt::format("subset of comm {}: rank {} is listed twice", parent.name, r),
                  {.comm = parent.name});
    }
  }
  if (ranks.empty()) {
    throw Error(ErrorKind::invalid, fmt::format("subset of comm {}: no ranks are listed", parent.name),
                {.comm = parent.name});
  }
  const auto place = std::find(ranks.begin(), ranks.end(), parent.rank);
  return split(place == ranks.end() ? -1 : 0, static_cast<int>(place - ranks.begin()), options);
}

Comm Comm::dup(const CommOptions& options) { return split(0, state().rank, options); }

}  // namespace medley
