#include "algorithms/host_lane.hpp"

#include <fmt/format.h>

#include "base/ranks_text.hpp"

namespace medley::algorithms {

HostLane::HostLane(std::unique_ptr<Lane> inner, std::vector<int> members, int size)
    : inner_(std::move(inner)), members_(std::move(members)), places_(static_cast<std::size_t>(size), -1) {
  for (std::size_t place = 0; place < members_.size(); ++place) {
    places_[static_cast<std::size_t>(members_[place])] = static_cast<int>(place);
  }
}

Transfer* HostLane::start(const Call& call) {
  Call inside = call;
  inside.root = places_[static_cast<std::size_t>(call.root)];
  return inner_->start(inside);
}

Error HostLane::in_ranks_of_comm(const Error& error) const {
  // It already says where it happened, or names nobody
  if (error.context().op || error.context().ranks.empty()) return error;
  ErrorContext context = error.context();
  for (int& rank : context.ranks) {
    if (rank >= 0 && static_cast<std::size_t>(rank) < members_.size()) rank = members_[static_cast<std::size_t>(rank)];
  }
  return Error(
      error.kind(),
      fmt::format("{} (by rank inside the host; {} of the comm)", error.what(), core::ranks_text(context.ranks)),
      context);
}

void HostLane::check() {
  try {
    inner_->check();
  } catch (const Error& error) {
    throw in_ranks_of_comm(error);
  }
}

void HostLane::abort(const Error& why) noexcept {
  ErrorContext context = why.context();
  context.ranks.clear();
  for (int rank : why.context().ranks) {
    if (reaches(rank)) context.ranks.push_back(places_[static_cast<std::size_t>(rank)]);
  }
  inner_->abort(Error(why.kind(), why.what(), context));
}

}  // namespace medley::algorithms
