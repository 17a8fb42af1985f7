#include "algorithms/hierarchical_lane.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "algorithms/device_phases.hpp"
#include "algorithms/hierarchical_transfer.hpp"

namespace medley::algorithms {

/// Starts the first phase.
Transfer* HierarchicalLane::begin(PhasedTransfer* transfer) {
  try {
    if (transfer->poll() != Poll::complete) return transfer;
  } catch (...) {
    transfer->release();
    throw;
  }
  transfer->release();
  return nullptr;
}

Transfer* HierarchicalLane::start(const Call& call) {
  if (parts_.device) return start_on_device(call);
  return is_collective(call.op) ? begin(new HierarchicalTransfer(*this, call)) : start_message(call);
}

Transfer* HierarchicalLane::start_on_device(const Call& call) {
  if (!is_collective(call.op)) return parts_.all->start(call);
  if (call.memory == Memory::host) return parts_.on_host->start(call);   // a barrier
  if (!stream_) stream_ = (*parts_.device)->make_stream();
  return begin(new DevicePhases(*this, call, *parts_.device, stream_));
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
  for (PhasedTransfer* orphan : orphans_) orphan->abandon({});
  orphans_.clear();
}

HierarchicalLane::~HierarchicalLane() { abandon_orphans(); }

}  // namespace medley::algorithms
