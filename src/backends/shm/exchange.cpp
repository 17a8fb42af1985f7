// Arrival, comparison and the in-line path of an exchange.
#include "backends/shm/exchange.hpp"

#include <fmt/format.h>

#include <cstring>

#include "backends/shm/direct_read.hpp"
#include "backends/shm/host_peers.hpp"

namespace medley::shm {
namespace {

// A flag word: the exchange's number in the high bits, what the rank called in the low bits. Counts and roots are
// truncated to their low bits, so that near misses always show; the sizes compared later are exact.
constexpr int op_shift = 28, dtype_shift = 24, reduce_shift = 21, mode_shift = 19, root_shift = 13;
constexpr std::uint32_t mode_mask = 3u << mode_shift;

std::uint32_t fingerprint(const Identity& i, Mode mode) {
  return static_cast<std::uint32_t>(i.op) << op_shift | static_cast<std::uint32_t>(i.dtype) << dtype_shift |
         static_cast<std::uint32_t>(i.reduce) << reduce_shift | static_cast<std::uint32_t>(mode) << mode_shift |
         (static_cast<std::uint32_t>(i.root) & 63u) << root_shift | (static_cast<std::uint32_t>(i.count) & 8191u);
}

Identity identity(std::uint32_t fingerprint) {
  return {.op = static_cast<Op>(fingerprint >> op_shift & 15u),
          .dtype = static_cast<DType>(fingerprint >> dtype_shift & 15u),
          .reduce = static_cast<ReduceOp>(fingerprint >> reduce_shift & 7u),
          .root = static_cast<int>(fingerprint >> root_shift & 63u),
          .count = static_cast<std::int64_t>(fingerprint & 8191u)};
}

std::uint64_t flag(std::uint32_t sequence, std::uint32_t fingerprint) {
  return static_cast<std::uint64_t>(sequence) << 32 | fingerprint;
}

std::string describe(const Identity& i) {
  std::string text = fmt::format("{} of {}", name(i.op), name(i.dtype));
  if (reduces(i.op)) text += fmt::format(" by {}", name(i.reduce));
  if (rooted(i.op)) text += fmt::format(" with root {}", i.root);
  return text;
}

/// A flag has the low bits of its rank's count: read as the value nearest to this rank's. Forms whose counts may differ
/// have none.
std::string describe_counts(const Identity& mine, const Identity& theirs, int rank) {
  constexpr std::int64_t known = 8192;
  std::int64_t apart = (theirs.count - mine.count) % known;
  if (apart == 0) return fmt::format("rank {} gives another count than this rank expects", rank);
  if (apart > known / 2) apart -= known;
  if (apart < -known / 2 || mine.count + apart < 0) apart += known;
  return fmt::format(
      "this rank has {} elements and rank {} has {} (or more or less by a multiple of {}): the counts differ between ranks",
      mine.count, rank, mine.count + apart, known);
}

}  // namespace

void throw_mismatch(const Identity& mine, const Identity& theirs, int rank, std::int64_t my_bytes,
                    std::int64_t their_bytes) {
  std::string sentence =
      fmt::format("this rank called {} but rank {} called {}", describe(mine), rank, describe(theirs));
  if (my_bytes != their_bytes) {
    sentence = fmt::format("in {}, rank {} gives {} bytes where this rank expects {}: the counts differ between ranks",
                           describe(mine), rank, their_bytes, my_bytes);
  } else if (describe(mine) == describe(theirs)) {
    sentence = fmt::format("in {}, {}", describe(mine), describe_counts(mine, theirs, rank));
  }
  throw Error(ErrorKind::mismatch, sentence, {.ranks = {rank}});
}

Exchanger::Exchanger(SegmentView view, int rank, const HostPeers& host_peers, std::vector<int> members)
    : view_(view),
      rank_(rank),
      host_peers_(host_peers),
      members_(std::move(members)),
      sources_(members_.size()),
      may_stream_(host_peers.may_stream() && !host_peers.oversubscribed() && ranks() <= 3) {
  for (int r = 0; r < ranks(); ++r) {
    if (r != rank_) peers_.push_back(members_[static_cast<std::size_t>(r)]);
  }
}

void Exchanger::wake() const { host_peers_.wake(peers_); }

bool Exchanger::can_begin() {
  const std::uint32_t needed = sequence_ + 1 - (depth - 1);
  if (at_least(checked_, needed)) return true;
  // A rooted exchange does not read every flag. The flags are read here, as many as are set at a time: each is a line
  // in a peer's cache, and three of them take as long as one.
  for (std::uint32_t s = checked_ + 1; s != sequence_ + 1; ++s) {
    // Relaxed: written by this thread
    const std::uint64_t mine = view_.line(rank_, s).word.load(std::memory_order_relaxed);
    for (int r = 0; r < ranks(); ++r) {
      if (r == rank_) continue;
      // Pairs with the release store in the peer's arrive(), which comes after its reads of the slot that is written
      // next.
      const std::uint64_t word = view_.line(r, s).word.load(std::memory_order_acquire);
      if (!at_least(sequence_of(word), s)) return at_least(checked_, needed);
      // A peer whose flag is overwritten by now is further on, and has compared ours for this exchange.
      if (sequence_of(word) == s && ((word ^ mine) & ~std::uint64_t{mode_mask}) != 0) {
        throw_mismatch(identity(static_cast<std::uint32_t>(mine)), identity(static_cast<std::uint32_t>(word)), r, 0, 0);
      }
    }
    checked_ = s;
  }
  return true;
}

void Exchanger::arrive(const Exchange& exchange) {
  Line& line = view_.line(rank_, sequence_);
  // Pairs with the acquire loads in arrived() and can_begin().
  line.word.store(flag(sequence_, fingerprint(exchange.identity, exchange.mode)), std::memory_order_release);
  wake();
}

void Exchanger::next() {
  ++sequence_;
  ++count_;
  readers_.clear();
  laying_ = -1;
}

bool Exchanger::finished(int rank) const {
  // A finished reader may already have finished a later exchange. Pairs with the release store in run().
  return view_.finished(rank).value.load(std::memory_order_acquire) >= count_;
}

void Exchanger::arrive_in_line(const Exchange& exchange) {
  next();
  if (exchange.give.kind != Parts::Kind::none && exchange.give.base) {
    std::memcpy(payload(rank_, exchange.handed), exchange.give.base, exchange.give.total(ranks()));
  }
  arrive(exchange);
  copy_own(exchange);  // while the peers' data is on the way; what they take of this rank is in its line
}

bool Exchanger::arrived(int rank) const {
  // Pairs with the release store in arrive(): payload, table and staging slot are there.
  return sequence_of(view_.line(rank, sequence_).word.load(std::memory_order_acquire)) == sequence_;
}

void Exchanger::compare(const Exchange& exchange, int rank) const {
  // relaxed: arrived() has seen this word, and it does not change before this rank arrives at the next exchange
  const auto theirs = static_cast<std::uint32_t>(view_.line(rank, sequence_).word.load(std::memory_order_relaxed));
  const std::uint32_t mine = fingerprint(exchange.identity, exchange.mode);
  // An exchange is in line for all ranks or for none, unless their counts differ by more than the flag can show.
  const bool in_line = (theirs & mode_mask) == 0;
  if (((theirs ^ mine) & ~mode_mask) != 0 || in_line != (exchange.mode == Mode::in_line)) {
    throw_mismatch(exchange.identity, identity(theirs), rank, 0, 0);
  }
}

/// For a rank that takes from one rank at most and reduces nothing: all of a broadcast or a scatter, and those of a
/// gather or reduce but the root.
bool Exchanger::take_one_in_line(const Exchange& exchange) {
  const Parts& take = exchange.take;
  if (take.kind == Parts::Kind::only && take.bytes != 0 && take.rank != rank_) {
    if (!arrived(take.rank)) return false;
    compare(exchange, take.rank);
    std::memcpy(take.base, payload(take.rank, exchange.handed) + exchange.part_at, take.bytes);
  }
  ended(exchange);
  return true;
}

bool Exchanger::take_in_line(const Exchange& exchange) {
  const bool one_at_most = exchange.take.kind == Parts::Kind::none || exchange.take.kind == Parts::Kind::only;
  if (one_at_most && !exchange.waits_for_all && !exchange.combine) return take_one_in_line(exchange);
  for (int r = ranks() - 1; r >= 0; --r) {
    if (r != rank_ && !arrived(r) && (exchange.waits_for_all || exchange.take.at(r).bytes != 0)) return false;
  }
  for (int r = 0; r < ranks(); ++r) {
    if (r == rank_) {
      // From its own memory, not from its line: a load of what was just stored waits until the line has come back from
      // the peers' caches, 0.1 to 0.2 µs.
      sources_[static_cast<std::size_t>(r)] = exchange.own;
      continue;
    }
    const auto wanted = exchange.take.at(r);
    if (!exchange.waits_for_all && wanted.bytes == 0 && !exchange.combine) continue;
    compare(exchange, r);
    const std::byte* given = payload(r, exchange.handed) + exchange.part_at;
    if (exchange.combine) {
      sources_[static_cast<std::size_t>(r)] = given;
    } else if (wanted.bytes > 0) {
      std::memcpy(wanted.data, given, wanted.bytes);
    }
  }
  if (exchange.combine) {
    exchange.combine(exchange.into, sources_.data(), ranks(), exchange.into_bytes / exchange.element, exchange.divisor,
                     false);
  }
  ended(exchange);
  return true;
}

bool Exchanger::readers_near() const {
  for (int r = 0; r < ranks(); ++r) {
    // Relaxed: a hint
    if (r != rank_ && view_.cache_local(r).value.load(std::memory_order_relaxed) == 0) return false;
  }
  return true;
}

void Exchanger::ended(const Exchange& exchange) {
  if (exchange.mode != Mode::in_line && exchange.all_meet) all_near_ = met_cache_local_;
  if (exchange.waits_for_all && checked_ + 1 == sequence_) checked_ = sequence_;
}

Mode Exchanger::mode_of(int rank) const {
  // relaxed: as in compare()
  return static_cast<Mode>(view_.line(rank, sequence_).word.load(std::memory_order_relaxed) >> mode_shift & 3u);
}

}  // namespace medley::shm
