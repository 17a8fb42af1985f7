#include "algorithms/hierarchical_lane.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <medley/sdk/recycled.hpp>
#include <medley/sdk/transfer_ref.hpp>
#include <utility>

#include "algorithms/device_phases.hpp"
#include "algorithms/hierarchical_transfer.hpp"
#include "algorithms/joined_transfer.hpp"
#include "algorithms/split_share.hpp"

namespace medley::algorithms {
namespace {

// Large tensors travel in segments of at least about this size for each host: while one crosses the network, the ranks
// of a host reduce the next one and gather the one before. all_reduce over shm+mpi on 16 cores, against whole tensors:
// 8 MiB 0.88 of the time on 2 hosts x 2 ranks, 0.81 on 2 x 4, 0.85 on 4 x 2; 2 MiB 0.9 to 1.1; segments of half this
// size 1.05 to 1.4, since small messages between hosts cost more.
constexpr std::int64_t segment_bytes_per_host = 512 << 10;
// More would add to every poll and gain little: the first and the last segment, which overlap nothing, are an eighth of
// the tensor.
constexpr std::int64_t most_segments = 16;
// Equal slices differ by one element at most; a multiple of 16 keeps their alignment.
constexpr std::int64_t skew_per_segment = 16;

/// Makes a transfer and starts its first phase. Null if it is complete.
template <class Phased, class... Args>
Transfer* start_phases(HierarchicalLane& lane, Args&&... args) {
  return first_poll(TransferRef<>(new Phased(lane, std::forward<Args>(args)...)));
}

}  // namespace

/// A message between ranks of one host. Its library numbers them within the host.
class HierarchicalLane::LocalMessage final : public Transfer, public Recycled<LocalMessage> {
 public:
  LocalMessage(const HierarchicalLane& lane, TransferRef<> message) : lane_(lane), message_(std::move(message)) {}
  Poll poll() override {
    return lane_.in_whole_ranks(lane_.parts_.inside.get(), [this] { return message_->poll(); });
  }
  std::vector<int> awaited() const override {
    std::vector<int> ranks = message_->awaited();
    for (int& rank : ranks) rank = lane_.whole_rank(lane_.parts_.inside.get(), rank);
    return ranks;
  }
  std::int64_t received() const override { return message_->received(); }
  void abandon(std::shared_ptr<const void> memory) noexcept override {
    message_.release()->abandon(std::move(memory));
    delete this;
  }

 private:
  const HierarchicalLane& lane_;
  TransferRef<> message_;
};

HierarchicalLane::HierarchicalLane(Lanes parts, int host, int place, int hosts, int places)
    : parts_(std::move(parts)),
      lanes_{parts_.inside.get(), parts_.between.get(), parts_.all.get()},
      host_(host),
      place_(place),
      hosts_(hosts),
      places_(places) {
  if (parts_.leaving) lanes_.push_back(parts_.leaving.get());
}

Transfer* HierarchicalLane::start(const Call& call) {
  if (parts_.device) return start_on_device(call);
  if (!is_collective(call.op)) return start_message(call);
  if (!divisible(call.op)) return start_phases<HierarchicalTransfer>(*this, call);
  const std::int64_t most = segment_bytes_per_host * hosts_;
  const std::int64_t bytes = std::max(call.in_count, call.out_count) * static_cast<std::int64_t>(size_of(call.dtype));
  return start_in_segments(call, std::clamp<std::int64_t>((bytes + most - 1) / most, 1, most_segments));
}

/// Equal segments, so that none is small. Tensors of different sizes may have segments of one size: the skew of the
/// first one's slices tells how many there are, so that ranks whose counts differ meet slices that differ, which is an
/// error.
Transfer* HierarchicalLane::start_in_segments(const Call& call, std::int64_t segments) {
  if (segments == 1) return start_phases<HierarchicalTransfer>(*this, call);
  const std::int64_t count = std::max(call.in_count, call.out_count);
  TransferRef<JoinedTransfer> whole(new JoinedTransfer(orphans_));
  for (std::int64_t i = 0; i < segments; ++i) {
    const std::int64_t at = count * i / segments, end = count * (i + 1) / segments;
    const std::int64_t skew = i == 0 ? skew_per_segment * (segments - 1) : 0;
    whole->add(start_phases<HierarchicalTransfer>(*this, part_of(call, at, end - at), skew));
  }
  return whole->done() ? nullptr : whole.release();
}

Transfer* HierarchicalLane::start_on_device(const Call& call) {
  if (!is_collective(call.op)) return parts_.all->start(call);
  if (call.memory == Memory::host) return parts_.on_host->start(call);  // a barrier
  if (!stream_) stream_ = (*parts_.device)->make_stream();
  return start_phases<DevicePhases>(*this, call, *parts_.device, stream_);
}

/// Collectives' messages inside a host stay there. Users' messages all take one lane: a receive from any source looks
/// in one only.
Transfer* HierarchicalLane::start_message(const Call& call) {
  if (call.tag >= 0 || call.root / places_ != host_) return parts_.all->start(call);
  Call local = call;
  local.root = call.root % places_;
  TransferRef<> started(in_whole_ranks(parts_.inside.get(), [&] { return parts_.inside->start(local); }));
  return started ? new LocalMessage(*this, std::move(started)) : nullptr;
}

void HierarchicalLane::progress() {
  for (Lane* lane : lanes_) in_whole_ranks(lane, [lane] { lane->progress(); });
}

std::vector<int> HierarchicalLane::awaited_now() const {
  for (const PhasedTransfer* transfer : issued_) {
    if (transfer->under_way()) return transfer->awaited();
  }
  return {};
}

bool HierarchicalLane::undelivered() const {
  return std::any_of(lanes_.begin(), lanes_.end(), [](const Lane* lane) { return lane->undelivered(); });
}

Error HierarchicalLane::in_whole_ranks(const Lane* part, const Error& error) const {
  if (!part || part == parts_.all.get()) return error;
  ErrorContext context = error.context();
  for (int& rank : context.ranks) rank = rank < 0 ? elsewhere(rank) : whole_rank(part, rank);
  return Error(
      error.kind(),
      fmt::format("{} (ranks are numbered {})", error.what(), is_inside(part) ? "within this host" : "across hosts"),
      context);
}

void HierarchicalLane::check() {
  for (Lane* lane : lanes_) in_whole_ranks(lane, [lane] { lane->check(); });
}

void HierarchicalLane::abort(const Error& why) noexcept {
  for (Lane* lane : lanes_) {
    ErrorContext context = why.context();
    const int ranks = is_inside(lane) ? places_ : lane == parts_.between.get() ? hosts_ : hosts_ * places_;
    for (int& meant : context.ranks) {
      int rank = 0;
      while (rank < ranks && whole_rank(lane, rank) != meant) ++rank;
      meant = rank < ranks ? rank : elsewhere(meant);
    }
    lane->abort(Error(why.kind(), why.what(), context));
  }
}

bool HierarchicalLane::poll_abort() noexcept {
  bool over = true;
  for (Lane* lane : lanes_) over = lane->poll_abort() && over;
  if (over) orphans_.abandon();
  return over;
}

bool HierarchicalLane::poll_close() noexcept {
  bool over = orphans_.poll_close(*this);
  for (Lane* lane : lanes_) over = lane->poll_close() && over;
  return over;
}

}  // namespace medley::algorithms
