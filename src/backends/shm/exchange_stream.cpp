// Exchanges larger than a staging slot between peers that share a cache, or that cannot read each other's memory: chunk
// by chunk through the staging area as a ring, each giver as fast as its slowest reader.
#include <algorithm>
#include <chrono>
#include <cstring>

#include "backends/shm/exchange.hpp"
#include "backends/shm/host_peers.hpp"

namespace medley::shm {
namespace {

// A chunk takes some 50 µs on cache-local cores and 250 on others; a descheduled rank comes back after milliseconds.
constexpr auto longest_chunk = std::chrono::microseconds(500);

// Where one rank gives, small chunks let its readers copy while it writes: broadcast of 256 KiB and 1 MiB between 2
// ranks takes 0.83 of the time. Where all give and take, each rank alternates, and large chunks mean fewer waits:
// all_gather of 4 MiB takes 0.92.
constexpr std::size_t pipelined_chunk = 64u << 10;
constexpr std::size_t fewest_chunks = 4;

std::uint64_t stamp(std::uint32_t sequence, std::size_t chunks) {
  return static_cast<std::uint64_t>(sequence) << 32 | chunks;
}

std::size_t chunks_of(std::size_t bytes, std::size_t quota) { return (bytes + quota - 1) / quota; }

}  // namespace

/// One rank's role in a streamed exchange: lays out its own chunks and takes those of its sources.
class Streamer {
 public:
  Streamer(Exchanger& owner, const Exchange& exchange, std::vector<int> sources)
      : owner_(owner),
        exchange_(exchange),
        view_(owner.view_),
        sources_(std::move(sources)),
        taken_(sources_.size(), 0),
        area_(view_.geometry().slot_bytes * depth) {
    if (exchange.mode == Mode::streamed) {
      quota_ = owner.chunk_bytes(exchange);
      places_ = places(exchange.give.kind, quota_);
      for (int r = 0; r < owner.ranks(); ++r) {
        if (r != owner.rank_) to_lay_ = std::max(to_lay_, chunks_of(exchange.give.at(r).bytes, quota_));
      }
    }
    owner_.streamer_ = this;
  }
  ~Streamer() { owner_.streamer_ = nullptr; }
  Streamer(const Streamer&) = delete;
  Streamer& operator=(const Streamer&) = delete;

  /// Makes what progress it can; false if there was none.
  bool step() {
    bool moved = lay();
    moved = (exchange_.combine ? reduce() : copy()) || moved;
    if (moved) owner_.wake();
    return moved;
  }

  bool done() const {
    if (laid_ < to_lay_ || taken_by_all() < to_lay_) return false;
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      if (!took_all(i)) return false;
    }
    return true;
  }

  /// Whether this rank waits for the other to take or to give.
  bool awaits(int rank) const {
    if (std::size_t chunks = 0; !reader_done(rank, chunks)) return true;
    const auto source = std::find(sources_.begin(), sources_.end(), rank);
    return source != sources_.end() && !took_all(static_cast<std::size_t>(source - sources_.begin()));
  }

 private:
  static bool shared(Parts::Kind kind) { return kind == Parts::Kind::common || kind == Parts::Kind::only; }
  /// How many chunks of a giver are in flight: two where each holds a part for every reader.
  std::size_t places(Parts::Kind kind, std::size_t chunk) const { return shared(kind) ? area_ / chunk : 2; }
  /// Where in the giver's staging area a reader finds its part of chunk number `number`.
  std::size_t place(Parts::Kind kind, std::size_t chunk, std::size_t number, int reader) const {
    const std::size_t begin = number % places(kind, chunk) * (area_ / places(kind, chunk));
    return begin + (shared(kind) ? 0 : static_cast<std::size_t>(reader) * chunk);
  }
  std::size_t source_quota(std::size_t i) const { return owner_.descriptor(sources_[i]).chunk; }
  std::size_t wanted(std::size_t i) const {
    return exchange_.combine ? exchange_.into_bytes : exchange_.take.at(sources_[i]).bytes;
  }

  bool took_all(std::size_t i) const { return taken_[i] >= chunks_of(wanted(i), source_quota(i)); }

  /// Whether a reader has taken everything that this rank gives to it; `chunks`: how many it has taken.
  bool reader_done(int r, std::size_t& chunks) const {
    chunks = 0;
    const std::size_t all = r == owner_.rank_ ? 0 : chunks_of(exchange_.give.at(r).bytes, quota_);
    if (all == 0) return true;
    // Pairs with the release store in the reader's took(): it has copied, and the space may be reused.
    const std::uint64_t seen = view_.taken(r, owner_.rank_).load(std::memory_order_acquire);
    // No rank takes from this one beyond this exchange, and older stamps are ignored, however old.
    if (seen >> 32 == owner_.sequence_) chunks = seen & 0xffffffffu;
    return chunks >= all;
  }
  /// How many chunks have been taken by every reader that wants more.
  std::size_t taken_by_all() const {
    std::size_t least = to_lay_, chunks = 0;
    for (int r = 0; r < owner_.ranks(); ++r) {
      if (!reader_done(r, chunks)) least = std::min(least, chunks);
    }
    return least;
  }

  bool lay() {
    if (laid_ >= to_lay_) return false;
    // Reads the readers' counters only when the ring is full: each read fetches a cache line from every reader.
    if (laid_ >= freed_ + places_) freed_ = taken_by_all();
    if (laid_ >= freed_ + places_) return false;
    const Parts::Kind kind = exchange_.give.kind;
    const std::size_t begin = laid_ * quota_;
    for (int r = 0; r < owner_.ranks(); ++r) {
      const auto part = exchange_.give.at(r);
      if (r == owner_.rank_ || part.bytes <= begin) continue;
      std::memcpy(view_.all_staging(owner_.rank_) + place(kind, quota_, laid_, r), part.data + begin,
                  std::min(quota_, part.bytes - begin));
      if (kind == Parts::Kind::common) break;
    }
    ++laid_;
    // Pairs with the acquire load in the readers' available().
    view_.laid(owner_.rank_, owner_.sequence_).store(laid_, std::memory_order_release);
    return true;
  }

  bool available(std::size_t i) const {
    // Pairs with the release store in the giver's lay(). The giver has arrived and cannot leave before this rank took
    // all.
    return view_.laid(sources_[i], owner_.sequence_).load(std::memory_order_acquire) > taken_[i];
  }
  /// The first chunk shows how cache-local its giver is, timed at its end: what was written last is still in the
  /// giver's cache.
  void probe(std::size_t i) const {
    const std::size_t bytes = std::min(source_quota(i), wanted(i));
    if (taken_[i] > 0 || bytes < CacheDistance::probe_bytes) return;
    owner_.distance_.probe(chunk(i) + (bytes - CacheDistance::probe_bytes) / 64 * 64);
  }
  const std::byte* chunk(std::size_t i) const {
    const Exchanger::Descriptor theirs = owner_.descriptor(sources_[i]);
    return view_.all_staging(sources_[i]) + place(theirs.kind, theirs.chunk, taken_[i], owner_.rank_);
  }
  void took(std::size_t i) {
    ++taken_[i];
    // Pairs with the acquire load in the giver's reader_done().
    view_.taken(owner_.rank_, sources_[i]).store(stamp(owner_.sequence_, taken_[i]), std::memory_order_release);
  }

  bool copy() {
    bool moved = false;
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      const std::size_t begin = taken_[i] * source_quota(i);
      if (begin >= wanted(i) || !available(i)) continue;
      probe(i);
      owner_.copy(exchange_.take.at(sources_[i]).data + begin, chunk(i), std::min(source_quota(i), wanted(i) - begin),
                  exchange_.past_cache);
      took(i);
      moved = true;
    }
    return moved;
  }

  bool reduce() {
    if (sources_.empty()) return false;
    const std::size_t begin = taken_[0] * source_quota(0);
    if (begin >= exchange_.into_bytes) return false;
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      if (!available(i)) return false;
      probe(i);
      owner_.sources_[static_cast<std::size_t>(sources_[i])] = chunk(i);
    }
    owner_.sources_[static_cast<std::size_t>(owner_.rank_)] = exchange_.own + begin;
    exchange_.combine(exchange_.into + begin, owner_.sources_.data(), owner_.ranks(),
                      std::min(source_quota(0), exchange_.into_bytes - begin) / exchange_.element, exchange_.divisor,
                      exchange_.past_cache);
    for (std::size_t i = 0; i < sources_.size(); ++i) took(i);
    return true;
  }

  Exchanger& owner_;
  const Exchange& exchange_;
  const SegmentView& view_;
  std::vector<int> sources_;
  std::vector<std::size_t> taken_;
  std::size_t area_;
  std::size_t quota_ = 1;
  std::size_t places_ = 2;
  std::size_t to_lay_ = 0;
  std::size_t laid_ = 0;
  std::size_t freed_ = 0;  ///< chunks that all readers had taken at the last look
};

/// A chunk holds a part for every reader, or one part that serves all.
std::size_t Exchanger::chunk_bytes(const Exchange& exchange) const {
  const std::size_t area = slot_bytes() * depth;
  if (exchange.give.kind == Parts::Kind::uniform || exchange.give.kind == Parts::Kind::listed) {
    return std::max<std::size_t>(64, area / 2 / static_cast<std::size_t>(ranks()) / 64 * 64);
  }
  return exchange.pipelined ? std::min(pipelined_chunk, area / fewest_chunks) : area / 2;
}

std::vector<int> Exchanger::missing() const {
  std::vector<int> awaited;
  for (int r = 0; r < ranks(); ++r) {
    // relaxed: nothing is read behind it; ShmLane::check() has acquired `left` before, so an earlier arrival is seen
    const bool there = at_least(sequence_of(view_.line(r, sequence_).word.load(std::memory_order_relaxed)), sequence_);
    const bool reads = std::find(readers_.begin(), readers_.end(), r) != readers_.end() && !finished(r);
    if (!there || reads || r == laying_ || (streamer_ && streamer_->awaits(r))) awaited.push_back(r);
  }
  return awaited;
}

Task Exchanger::stream(const Exchange& exchange, std::vector<int> sources) {
  // This uses the whole staging area, so all ranks must have finished the earlier exchanges.
  if (exchange.mode == Mode::streamed) {
    for (int r = 0; r < ranks(); ++r) {
      co_await until([this, r] { return arrived(r); });
      compare(exchange, r);
    }
  }
  Streamer streamer(*this, exchange, std::move(sources));
  const auto begun = std::chrono::steady_clock::now();
  bool stalled = false;
  while (!streamer.done()) {
    if (streamer.step()) {
      co_await yield_once();
    } else {
      const auto idle_since = std::chrono::steady_clock::now();
      co_await until([&] { return streamer.step() || streamer.done(); });
      stalled = stalled || std::chrono::steady_clock::now() - idle_since > longest_chunk;
    }
  }
  stalled ? distance_.stalled() : distance_.went_well();
  if (exchange.timed >= 0) note_path(exchange, begun);
}

}  // namespace medley::shm
