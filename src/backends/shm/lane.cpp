#include "backends/shm/lane.hpp"

#include <fmt/format.h>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstring>
#include <ctime>
#include <iterator>
#include <medley/sdk/memory_barrier.hpp>
#include <medley/sdk/peer_abort.hpp>
#include <optional>

#include "backends/shm/host_peers.hpp"

namespace medley::shm {
namespace {

// Per slot: space for cache-timing probes and for two small collectives in turn.
constexpr std::size_t small_part = CacheDistance::probe_bytes;
constexpr std::size_t small_collective = small_part / 2;

std::vector<int> members_of(const CommParams& params, const HostPeers& host_peers) {
  std::vector<int> members;
  for (int world_rank : params.world_ranks) members.push_back(host_peers.index(world_rank));
  return members;
}

/// For loops that wait for members: whether one of them died meanwhile. Checks every few milliseconds, since a check
/// asks the kernel about each member; most waits finish before the first.
class Watch {
  static constexpr std::chrono::milliseconds interval{10};

 public:
  Watch(const CommParams& params, const HostPeers& host_peers, const std::vector<int>& members)
      : params_(params), host_peers_(host_peers), members_(members) {}
  void look() {
    const auto now = std::chrono::steady_clock::now();
    if (now < next_) return;
    next_ = now + interval;
    for (std::size_t r = 0; r < members_.size(); ++r) {
      if (!host_peers_.dead(members_[r])) continue;
      throw Error(ErrorKind::rank_lost,
                  fmt::format("rank {} (process {}) died while comm {} was being made", r,
                              host_peers_.process(members_[r]), params_.name),
                  {.comm = params_.name, .backend = "shm", .ranks = {static_cast<int>(r)}});
    }
  }

 private:
  const CommParams& params_;
  const HostPeers& host_peers_;
  const std::vector<int>& members_;
  Deadline next_ = std::chrono::steady_clock::now() + interval;
};

/// The first rank makes the segment and publishes its address, or why it could not be made.
Segment attach(const CommParams& params, const Geometry& geometry) {
  if (params.rank != 0) return Segment::open_published(params.all_gather("").front(), geometry.total);
  const std::string key = "segment";
  const std::shared_ptr<Store> told = make_local_store();
  const auto tell = [&] {
    if (params.size > 1) params.all_gather(told->try_get(key).value_or(""));
  };
  std::optional<Segment> made;
  try {
    made.emplace(Segment::publish(geometry.total, geometry.control_bytes(),
                                  fmt::format("the {} ranks of comm {}", params.size, params.name), *told, key));
  } catch (const Error&) {
    tell();
    throw;
  }
  tell();
  return std::move(*made);
}

/// Waits until all members have opened the segment and have memory in it, so that its maker can seal it.
void await_all(const CommParams& params, const SegmentView& view, Watch watch) {
  // Sleeps until the last one wakes all, or briefly, since other comms need progress: 64 ranks that yield to each other
  // on two cores take 35 ms for this.
  constexpr timespec moment{0, 1'000'000};
  auto& attached = view.header().attached;
  const auto size = static_cast<std::uint32_t>(params.size);
  if (attached.fetch_add(1) + 1 == size) syscall(SYS_futex, &attached, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  for (std::uint32_t there = 0; (there = attached.load()) < size;) {
    if (std::chrono::steady_clock::now() > params.deadline) {
      throw Error(ErrorKind::timeout,
                  fmt::format("only {} of the {} ranks of comm {} opened its shared memory in time", attached.load(),
                              params.size, params.name),
                  {.comm = params.name, .backend = "shm"});
    }
    view.throw_if_aborted();
    if (attached.load() < size) watch.look();
    params.progress();
    syscall(SYS_futex, &attached, FUTEX_WAIT, there, &moment, nullptr, 0);
  }
}

}  // namespace

ShmLane::ShmLane(const CommParams& params, const HostPeers& host_peers)
    : host_peers_(host_peers),
      members_(members_of(params, host_peers)),
      segment_(attach(params, Geometry(params.size))),
      view_(segment_.data(), Geometry(params.size)),
      rank_(params.rank),
      exchanger_(view_, rank_, host_peers_, members_),
      collective_(exchanger_, host_peers_) {
  await_all(params, view_, Watch(params, host_peers, members_));
  segment_.seal();
}

/// How much of each of its slots this rank may use for a call. Oversubscribed, small collectives use only a part:
/// populating all of it took a third of the processor time of a split of 64 ranks on 2 cores. Otherwise the data
/// rotates through the slot (Exchanger::place_in_slot()).
std::size_t ShmLane::staging_for(const Call& call) const {
  const auto bytes = static_cast<std::size_t>(std::max(call.in_count, call.out_count)) * size_of(call.dtype);
  if (bytes <= in_line_bytes_) return 0;
  const bool listed = call.in_counts || call.out_counts;  // its parts may overlap, and exceed `bytes` together
  return host_peers_.oversubscribed() && !listed && bytes <= small_collective ? small_part
                                                                              : view_.geometry().slot_bytes;
}

void ShmLane::populate_staging(std::size_t of_each_slot) {
  const std::size_t slot = view_.geometry().slot_bytes;
  const auto first = static_cast<std::size_t>(view_.all_staging(rank_) - segment_.data());
  const bool all = of_each_slot == slot;
  for (std::size_t i = 0; i < (all ? 1 : depth); ++i)
    segment_.populate(first + i * slot, all ? slot * depth : of_each_slot);
  exchanger_.slots_ready(of_each_slot);
}

void ShmLane::make_matcher() {
  const auto first = reinterpret_cast<std::byte*>(&view_.pipe(rank_, 0)) - segment_.data();
  segment_.populate(static_cast<std::size_t>(first), view_.geometry().pipe_row_bytes());
  matcher_ = std::make_unique<TagMatcher>(view_, rank_, host_peers_, members_, host_peers_.direct_reads());
}

Transfer* ShmLane::start(const Call& call) {
  if (call.op == Op::send || call.op == Op::recv) {
    if (!matcher_) [[unlikely]]
      make_matcher();
    return matcher_->start(call);
  }
  if (exchanger_.ready_bytes() < view_.geometry().slot_bytes) {
    if (const std::size_t wanted = staging_for(call); wanted > exchanger_.ready_bytes()) populate_staging(wanted);
  }
  return collective_.start(call);
}

void ShmLane::progress() {
  if (matcher_) matcher_->progress();
}

ShmLane::~ShmLane() {
  if (!segment_.here()) return;                                 // a forked child does not map it
  view_.left(rank_).value.store(1, std::memory_order_release);  // pairs with the acquire loads in awaits() and check()
  host_peers_.wake(members_);
}

bool ShmLane::awaits(int rank) const {
  const auto gone = [this](int r) {
    // Pairs with the release store in the peer's ~ShmLane().
    return view_.left(r).value.load(std::memory_order_acquire) != 0 ||
           host_peers_.dead(members_[static_cast<std::size_t>(r)]);
  };
  if (matcher_ && matcher_->awaits(rank, gone)) return true;
  if (!collective_.running()) return false;
  const std::vector<int> awaited = collective_.awaited();
  return std::find(awaited.begin(), awaited.end(), rank) != awaited.end();
}

void ShmLane::check() {
  // The root cause first: a rank that has noticed a death aborts the comm, and one that got an error may leave. Pairs
  // with the release store in the peer's ~ShmLane(), after all that it published.
  const auto left = [&](int r) { return view_.left(r).value.load(std::memory_order_acquire) != 0; };
  const int ranks = static_cast<int>(members_.size());
  for (int r = 0; r < ranks; ++r) {
    const int member = members_[static_cast<std::size_t>(r)];
    // In this order: it left before its process ended
    if (r == rank_ || !host_peers_.dead(member) || left(r)) continue;
    throw Error(ErrorKind::rank_lost, fmt::format("rank {} (process {}) died", r, host_peers_.process(member)),
                {.ranks = {r}});
  }
  view_.throw_if_aborted();
  for (int r = 0; r < ranks; ++r) {
    if (r == rank_ || !left(r) || !awaits(r)) continue;
    throw peer_left(r);
  }
}

void ShmLane::abort(const Error& why) noexcept {
  collective_.stop();
  if (matcher_) matcher_->stop();
  Header& header = view_.header();
  std::uint32_t nobody = 0;
  if (!header.aborted.compare_exchange_strong(nobody, abort_being_written)) return;
  header.kind = static_cast<std::uint32_t>(why.kind());
  header.ranks_at_fault = static_cast<std::uint32_t>(std::min(why.context().ranks.size(), std::size(header.at_fault)));
  std::copy_n(why.context().ranks.begin(), header.ranks_at_fault, header.at_fault);
  const std::size_t length = std::min(std::strlen(why.what()), sizeof header.reason - 1);
  std::memcpy(header.reason, why.what(), length);
  header.reason[length] = '\0';
  // Pairs with the acquire load in SegmentView::throw_if_aborted(): the reason is complete.
  header.aborted.store(static_cast<std::uint32_t>(rank_) + 1, std::memory_order_release);
  // Callers get their memory back now and may write into it, while a peer still reads it directly. A peer that reads
  // what they write must see the abort: pairs with the read_barrier() in Exchanger::run() and RecvTransfer::poll().
  // (Where another rank was first, the load above has acquired its abort, which every core sees by then.)
  write_barrier();
  host_peers_.wake(members_);
}

}  // namespace medley::shm
