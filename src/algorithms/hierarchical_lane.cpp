#include "algorithms/hierarchical_lane.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "algorithms/job.hpp"
#include "algorithms/registry.hpp"
#include "core/task.hpp"

namespace medley::algorithms {

/// One collective in phases. Ranks are hosts x places: number = host * places + place.
class HierarchicalTransfer final : public Transfer {
 public:
  HierarchicalTransfer(HierarchicalLane& lane, const Call& call) : lane_(lane), call_(call), task_(run()) {}
  ~HierarchicalTransfer() override {
    if (inner_) inner_->release();
  }

  Poll poll() override {
    moved_ = false;
    const Poll seen = task_.poll();
    if (seen == Poll::complete) complete_ = true;
    return seen == Poll::waiting && moved_ ? Poll::moved : seen;
  }
  std::vector<int> awaited() const override {
    std::vector<int> ranks = inner_ ? inner_->awaited() : std::vector<int>{};
    for (int& rank : ranks) rank = lane_.whole_rank(at_, rank);
    return ranks;
  }
  void release() noexcept override {
    if (complete_ || !inner_) {
      delete this;
    } else {
      lane_.orphans_.push_back(this);
    }
  }

 private:
  int places() const { return lane_.places_; }
  int hosts() const { return lane_.hosts_; }
  std::size_t bytes(std::int64_t count) const { return static_cast<std::size_t>(count) * size_of(call_.dtype); }
  const std::byte* in(std::int64_t at = 0) const { return static_cast<const std::byte*>(call_.in) + bytes(at); }
  std::byte* out(std::int64_t at = 0) const { return static_cast<std::byte*>(call_.out) + bytes(at); }

  core::Task run() {
    switch (call_.op) {
      case Op::all_reduce: co_await all_reduce(); break;
      case Op::reduce_scatter: co_await reduce_scatter(); break;
      case Op::all_gather: co_await all_gather(); break;
      case Op::broadcast: co_await broadcast(); break;
      default: co_await all_to_all(); break;
    }
  }

  /// A phase as a call of its own.
  Call& phase(Op op, const void* from, std::int64_t in_count, void* to, std::int64_t out_count, int root = 0) {
    part_ = Call{};
    part_.op = op;
    part_.dtype = call_.dtype;
    part_.reduce = call_.reduce;
    part_.memory = call_.memory;
    part_.deterministic = call_.deterministic;
    part_.root = root;
    part_.in = from;
    part_.in_count = in_count;
    part_.out = to;
    part_.out_count = out_count;
    return part_;
  }
  auto over(Lane& lane) {
    at_ = &lane;
    inner_ = lane.start(part_);
    return core::until([this] {
      if (!inner_) return true;
      at_->progress();   // who waits for a collective does not ask whether its phases are filled in
      const Poll seen = inner_->poll();
      moved_ = moved_ || seen == Poll::moved;
      if (seen != Poll::complete) return false;
      std::exchange(inner_, nullptr)->release();
      return true;
    });
  }
  auto inside() { return over(*lane_.parts_.inside); }
  auto between() {
    if (reduces(part_.op) && lane_.parts_.own_reductions) part_.algorithm = choose(part_, hosts()).name;
    return over(*lane_.parts_.between);
  }

  /// Cuts a tensor into one slice for each place of a host.
  void slice(std::int64_t count) {
    counts_.clear(), offsets_.clear();
    for (int p = 0; p < places(); ++p) {
      offsets_.push_back(count * p / places());
      counts_.push_back(count * (p + 1) / places() - offsets_.back());
    }
  }
  std::int64_t own_count() const { return counts_[static_cast<std::size_t>(lane_.place_)]; }
  std::int64_t own_offset() const { return offsets_[static_cast<std::size_t>(lane_.place_)]; }
  void gather_slices(std::byte* whole, std::int64_t count) {
    Call& call = phase(Op::all_gatherv, whole + bytes(own_offset()), own_count(), whole, count);
    call.out_counts = counts_.data();
    call.out_offsets = offsets_.data();
  }

  /// Each place reduces a slice inside its host, then with the same place of the other hosts, then all places share.
  core::Task all_reduce() {
    const std::int64_t count = call_.out_count;
    slice(count);
    Call& scatter = phase(Op::reduce_scatterv, in(), count, out(own_offset()), own_count());
    scatter.in_counts = counts_.data();
    scatter.in_offsets = offsets_.data();
    co_await inside();
    if (own_count() > 0) {
      phase(Op::all_reduce, out(own_offset()), own_count(), out(own_offset()), own_count());
      co_await between();
    }
    gather_slices(out(), count);
    co_await inside();
  }

  /// Copies parts from [host][place] to [place][host] order.
  void by_place(std::byte* to, const std::byte* from, std::int64_t part) const {
    for (int h = 0; h < hosts(); ++h) {
      for (int p = 0; p < places(); ++p) {
        std::memcpy(to + bytes(part * (p * hosts() + h)), from + bytes(part * (h * places() + p)), bytes(part));
      }
    }
  }
  void by_host(std::byte* to, const std::byte* from, std::int64_t part) const {
    for (int p = 0; p < places(); ++p) {
      for (int h = 0; h < hosts(); ++h) {
        std::memcpy(to + bytes(part * (h * places() + p)), from + bytes(part * (p * hosts() + h)), bytes(part));
      }
    }
  }
  std::byte* room(Scratch& scratch, std::int64_t count) const { return (scratch = Scratch(bytes(count))).data(); }

  core::Task reduce_scatter() {
    const std::int64_t part = call_.out_count, whole = call_.in_count;
    if (part == 0) co_return;
    std::byte* packed = room(first_, whole);
    std::byte* slices = room(second_, part * hosts());
    by_place(packed, in(), part);
    phase(Op::reduce_scatter, packed, whole, slices, part * hosts());
    co_await inside();
    phase(Op::reduce_scatter, slices, part * hosts(), out(), part);
    co_await between();
  }

  core::Task all_gather() {
    const std::int64_t part = call_.in_count, whole = call_.out_count;
    if (part == 0) co_return;
    std::byte* column = room(first_, part * hosts());
    phase(Op::all_gather, in(), part, column, part * hosts());
    co_await between();
    std::byte* packed = room(second_, whole);
    phase(Op::all_gather, column, part * hosts(), packed, whole);
    co_await inside();
    by_host(out(), packed, part);
  }

  /// The root's host scatters slices among its places, each goes to the other hosts, and every host puts them together;
  /// the root's own host takes the tensor from the root.
  core::Task broadcast() {
    const int root_host = call_.root / places(), root_place = call_.root % places();
    const bool at_root_host = lane_.host_ == root_host, root = at_root_host && lane_.place_ == root_place;
    const std::int64_t count = root ? call_.in_count : call_.out_count;
    slice(count);
    const std::byte* own = root ? in(own_offset()) : out(own_offset());
    if (at_root_host) {
      // The root's own slice stays where it is; a scatter to nobody but itself would need a place to write to.
      sent_ = counts_;
      sent_[static_cast<std::size_t>(root_place)] = 0;
      Call& scatter = phase(Op::scatterv, root ? call_.in : nullptr, root ? count - own_count() : 0,
                            root ? nullptr : out(own_offset()), root ? 0 : own_count(), root_place);
      if (root) scatter.in_counts = sent_.data(), scatter.in_offsets = offsets_.data();
      co_await inside();
    }
    if (own_count() > 0) {
      phase(Op::broadcast, at_root_host ? own : nullptr, at_root_host ? own_count() : 0, at_root_host ? nullptr : out(own_offset()),
            at_root_host ? 0 : own_count(), root_host);
      co_await between();
    }
    if (at_root_host) {
      phase(Op::broadcast, root ? call_.in : nullptr, root ? count : 0, root ? nullptr : call_.out, root ? 0 : count, root_place);
    } else {
      gather_slices(out(), count);
    }
    co_await inside();
  }

  core::Task all_to_all() {
    const std::int64_t part = call_.in_count / (hosts() * places()), whole = call_.in_count;
    if (part == 0) co_return;
    std::byte* packed = room(first_, whole);
    std::byte* met = room(second_, whole);
    by_place(packed, in(), part);
    phase(Op::all_to_all, packed, whole, met, whole);   // everything for my place, from all of my host
    co_await inside();
    by_host(packed, met, part);
    phase(Op::all_to_all, packed, whole, out(), whole);
    co_await between();
  }

  HierarchicalLane& lane_;
  Call call_;
  Call part_;                            ///< of the phase under way
  std::vector<std::int64_t> counts_, offsets_, sent_;
  Scratch first_, second_;
  Lane* at_ = nullptr;                   ///< where the phase is
  Transfer* inner_ = nullptr;
  bool moved_ = false;
  bool complete_ = false;
  core::Task task_;
};

Transfer* HierarchicalLane::start(const Call& call) {
  if (!is_collective(call.op)) return start_message(call);
  auto* transfer = new HierarchicalTransfer(*this, call);
  try {
    if (transfer->poll() != Poll::complete) return transfer;   // the first phase leaves at once
  } catch (...) {
    transfer->release();
    throw;
  }
  transfer->release();
  return nullptr;
}

/// Of collectives those inside a host stay there. Users' go all one way: who receives from any source looks in one place only.
Transfer* HierarchicalLane::start_message(const Call& call) {
  if (call.tag >= 0 || call.root / places_ != host_) return parts_.all->start(call);
  Call near = call;
  near.root = call.root % places_;
  return parts_.inside->start(near);
}

void HierarchicalLane::progress() {
  for (Lane* lane : {parts_.inside.get(), parts_.between.get(), parts_.all.get()}) lane->progress();
}

bool HierarchicalLane::undelivered() const {
  return parts_.inside->undelivered() || parts_.between->undelivered() || parts_.all->undelivered();
}

void HierarchicalLane::check() {
  for (Lane* lane : {parts_.inside.get(), parts_.between.get(), parts_.all.get()}) {
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
  for (Lane* lane : {parts_.inside.get(), parts_.between.get(), parts_.all.get()}) {
    ErrorContext context = why.context();
    context.ranks.clear();
    const int ranks = lane == parts_.inside.get() ? places_ : lane == parts_.between.get() ? hosts_ : hosts_ * places_;
    for (int rank = 0; rank < ranks; ++rank) {
      const auto& meant = why.context().ranks;
      if (std::find(meant.begin(), meant.end(), whole_rank(lane, rank)) != meant.end()) context.ranks.push_back(rank);
    }
    lane->abort(Error(why.kind(), why.what(), context));
  }
  for (HierarchicalTransfer* orphan : orphans_) delete orphan;
  orphans_.clear();
}

HierarchicalLane::~HierarchicalLane() {
  if (!orphans_.empty()) abort(Error(ErrorKind::aborted, "its comm was closed"));
}

}  // namespace medley::algorithms
