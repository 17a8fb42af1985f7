#include "algorithms/hierarchical_lane.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "algorithms/hierarchical_transfer.hpp"

namespace medley::algorithms {

Transfer* HierarchicalLane::start(const Call& call) {
  if (!is_collective(call.op)) return start_message(call);
  auto* transfer = new HierarchicalTransfer(*this, call);
  try {
    if (transfer->poll() != Poll::complete) return transfer;   // the first phase starts at once
  } catch (...) {
    transfer->release();
    throw;
  }
  transfer->release();
  return nullptr;
}

/// Collectives' messages inside a host stay there. Users' messages all take one lane: a receive from any source looks in one only.
Transfer* HierarchicalLane::start_message(const Call& call) {
  if (call.tag >= 0 || call.root / places_ != host_) return parts_.all->start(call);
  Call near = call;
  near.root = call.root % places_;
  return parts_.inside->start(near);
}

void HierarchicalLane::progress() {
  for (Lane* lane : lanes()) lane->progress();
}

bool HierarchicalLane::undelivered() const {
  return parts_.inside->undelivered() || parts_.between->undelivered() || parts_.all->undelivered();
}

void HierarchicalLane::check() {
  for (Lane* lane : lanes()) {
    try {
      lane->check();
    } catch (const Error& error) {
      if (lane == parts_.all.get()) throw;
      ErrorContext context = error.context();
      for (int& rank : context.ranks) rank = whole_rank(lane, rank);
      throw Error(error.kind(), fmt::format("{} (a rank of this {} is meant)", error.what(),
                                            lane == parts_.inside.get() ? "host" : "place on every host"), context);
    }
  }
}

void HierarchicalLane::abort(const Error& why) noexcept {
  for (Lane* lane : lanes()) {
    ErrorContext context = why.context();
    context.ranks.clear();
    const int ranks = lane == parts_.inside.get() ? places_ : lane == parts_.between.get() ? hosts_ : hosts_ * places_;
    for (int rank = 0; rank < ranks; ++rank) {
      const auto& meant = why.context().ranks;
      if (std::find(meant.begin(), meant.end(), whole_rank(lane, rank)) != meant.end()) context.ranks.push_back(rank);
    }
    lane->abort(Error(why.kind(), why.what(), context));
  }
}

bool HierarchicalLane::poll_abort() noexcept {
  bool over = true;
  for (Lane* lane : lanes()) over = lane->poll_abort() && over;
  if (over) abandon_orphans();
  return over;
}

bool HierarchicalLane::poll_close() noexcept {
  if (!orphans_.empty() && !closing_) abort(Error(ErrorKind::aborted, "its comm was closed"));
  closing_ = true;
  bool over = orphans_.empty() || poll_abort();
  for (Lane* lane : lanes()) over = lane->poll_close() && over;
  return over;
}

void HierarchicalLane::abandon_orphans() noexcept {
  for (HierarchicalTransfer* orphan : orphans_) orphan->abandon({});
  orphans_.clear();
}

HierarchicalLane::~HierarchicalLane() { abandon_orphans(); }

}  // namespace medley::algorithms
