// Exchanges too large for a flag's line: laying out, copying and reducing what the others gave.
#include <algorithm>
#include <bit>
#include <cstring>
#include <medley/sdk/memory_barrier.hpp>

#include "backends/shm/direct_read.hpp"
#include "backends/shm/exchange.hpp"
#include "backends/shm/host_peers.hpp"

namespace medley::shm {
namespace {

// A probe costs both sides some 0.4 µs for direct reads, and the reader 0.1 µs for staged data.
constexpr std::uint32_t exchanges_per_probe = 8;

// 16 KiB takes a core some 2 µs to copy, and its readers, which all wait for one cache line, 0.2 to 0.4 µs to notice.
constexpr std::size_t pipeline_step = 16u << 10;

}  // namespace

Exchanger::Descriptor Exchanger::descriptor(int rank) const {
  Descriptor d;
  std::memcpy(&d, view_.line(rank, sequence_).payload, sizeof d);
  return d;
}

Exchanger::Offer Exchanger::offer(int rank) const {
  const Descriptor d = descriptor(rank);
  switch (d.kind) {
    case Parts::Kind::none: break;
    case Parts::Kind::common:
    case Parts::Kind::only: return {d.address, d.bytes};
    case Parts::Kind::uniform: return {d.address + static_cast<std::uint64_t>(rank_) * d.bytes, d.bytes};
    case Parts::Kind::listed: {
      const TableEntry entry = view_.table(rank, sequence_)[rank_];
      return {entry.where, entry.bytes};
    }
  }
  return {0, 0};
}

void Exchanger::expect(const Exchange& exchange, int rank, std::size_t offered, std::size_t wanted) const {
  if (offered == wanted) return;
  throw_mismatch(exchange.identity, exchange.identity, rank, static_cast<std::int64_t>(wanted),
                 static_cast<std::int64_t>(offered));
}

void Exchanger::copy(void* to, const void* from, std::size_t bytes, bool past_cache) const {
  if (bytes == 0 || to == from) return;
  if (past_cache) {
    copy_stream(to, from, bytes);
  } else {
    std::memcpy(to, from, bytes);
  }
}

/// Where in its slot a rank lays out what it gives. The place changes each time: what a peer has read before is still
/// in the peer's cache, and writing there is slower than where it was evicted: all_reduce of 16 KiB 1.8 µs instead of
/// 2.7.
std::size_t Exchanger::place_in_slot(std::size_t bytes) const {
  const std::size_t room = std::bit_ceil(std::max<std::size_t>(bytes, 4096));
  return count_ / depth % std::max<std::size_t>(1, ready_bytes_ / room) * room;
}

/// Where each rank finds its part: in the slot, from `place` on, or in this rank's memory.
void Exchanger::list_parts(const Exchange& exchange, std::size_t place) {
  if (exchange.give.kind != Parts::Kind::listed) return;
  const bool staged = exchange.mode == Mode::staged;
  TableEntry* table = view_.table(rank_, sequence_);
  for (int r = 0; r < ranks(); ++r) {
    const auto part = exchange.give.at(r);
    table[r] = {staged ? place : reinterpret_cast<std::uint64_t>(part.data), part.bytes};
    if (staged && r != rank_) place += part.bytes;
  }
}

/// Copies what this rank gives into its slot. Readers that have arrived follow it step by step.
void Exchanger::lay_out(const Exchange& exchange, std::size_t place) {
  std::byte* slot = view_.staging(rank_, sequence_);
  const auto lay = [&](const std::byte* from, std::size_t bytes) {
    const std::size_t step = exchange.pipelined ? pipeline_step : bytes;
    for (std::size_t at = 0; at < bytes; at += step) {
      const std::size_t now = std::min(step, bytes - at);
      copy(slot + place, from + at, now, false);
      place += now;
      // Pairs with the acquire load in laid().
      if (exchange.pipelined) view_.laid(rank_, sequence_).store(place, std::memory_order_release);
    }
  };
  if (exchange.give.kind != Parts::Kind::listed) {
    lay(exchange.give.base, exchange.give.total(ranks()));
  } else {
    for (int r = 0; r < ranks(); ++r) {
      const auto part = exchange.give.at(r);
      if (r != rank_) lay(part.data, part.bytes);
    }
  }
  // Pairs with the acquire load in laid(). Unless pipelined, no rank reads it before the flag that follows.
  view_.laid(rank_, sequence_).store(place, std::memory_order_release);
  if (exchange.pipelined) wake();
}

/// The place of this rank among the readers whose parts a giver lays into their own slots; -1: it is none of them.
int Exchanger::scattered_place(int giver) const {
  const int distance = (rank_ - giver + ranks()) % ranks();
  return mode_of(giver) == Mode::direct && distance <= descriptor(giver).scattered ? distance - 1 : -1;
}

std::uint64_t Exchanger::laid(int rank) const {
  return view_.laid(rank, sequence_).load(std::memory_order_acquire);  // pairs with the release stores in lay_out()
}

/// A scatter in two ways at once: the giver lays some parts into the slots of their readers, while the other readers
/// read its memory. A reader that has arrived has left all earlier exchanges: everything that it streamed was taken,
/// and it does not use its slot of this exchange, since it gives nothing. All ranks have left the exchange that used
/// this slot before, as can_begin() has seen.
Task Exchanger::scatter_out(const Exchange& exchange) {
  const std::size_t bytes = exchange.give.bytes;
  std::size_t laid = 0;
  for (int i = 1; i <= exchange.scattered; ++i) {
    const int r = (rank_ + i) % ranks();
    readers_.assign(1, r);
    co_await until([this, r] { return arrived(r); });
    compare(exchange, r);
    for (std::size_t at = 0; at < bytes; at += pipeline_step) {
      const std::size_t now = std::min(pipeline_step, bytes - at);
      copy(view_.staging(r, sequence_) + at, exchange.give.at(r).data + at, now, false);
      // Pairs with the acquire load in laid().
      view_.laid(rank_, sequence_).store(laid += now, std::memory_order_release);
    }
    wake();
  }
  readers_.clear();
}

void Exchanger::copy_own(const Exchange& exchange) const {
  if (exchange.combine) return;
  const auto to = exchange.take.at(rank_);
  const auto from = exchange.give.at(rank_);
  if (to.bytes == 0) return;
  expect(exchange, rank_, from.bytes, to.bytes);
  if (to.data == from.data) return;  // in place: it is there already, and the others may be reading it
  if (to.data < from.data + to.bytes && from.data < to.data + to.bytes) {  // in place, at another offset
    std::memmove(to.data, from.data, to.bytes);
  } else {
    copy(to.data, from.data, to.bytes, exchange.past_cache);
  }
}

void Exchanger::read(void* to, int rank, std::uint64_t where, std::size_t bytes) const {
  try {
    host_peers_.read(to, members_[static_cast<std::size_t>(rank)], where, bytes, rank);
  } catch (const Error&) {
    view_.throw_if_aborted();  // a giver that aborted may have freed its memory
    throw;
  }
}

/// Describes what this rank gives, and where it is if staged, for its readers.
void Exchanger::introduce(const Exchange& exchange, std::size_t place) {
  const bool direct = exchange.mode == Mode::direct;
  distance_.next_exchange();
  met_cache_local_ = may_stream_ && distance_.cache_local();
  // relaxed: a hint for readers_near(); what must agree between ranks goes with the descriptor
  if (Counter& told = view_.cache_local(rank_); (told.value.load(std::memory_order_relaxed) != 0) != met_cache_local_) {
    told.value.store(met_cache_local_ ? 1 : 0, std::memory_order_relaxed);
  }
  const Descriptor mine{.address = direct ? reinterpret_cast<std::uint64_t>(exchange.give.base) : place,
                        .bytes = exchange.give.bytes,
                        .chunk = static_cast<std::uint32_t>(chunk_bytes(exchange)),
                        .scattered = exchange.scattered,
                        .kind = exchange.give.kind,
                        .probe = direct && directly_given_++ % exchanges_per_probe == 0,
                        .cache_local = met_cache_local_};
  if (mine.probe) std::memset(view_.staging(rank_, sequence_), 0, CacheDistance::probe_bytes);
  static_assert(sizeof mine <= laid_offset);
  std::memcpy(view_.line(rank_, sequence_).payload, &mine, sizeof mine);
  // relaxed: published by the flag that follows
  if (exchange.mode == Mode::streamed || exchange.pipelined || exchange.scattered > 0)
    view_.laid(rank_, sequence_).store(0, std::memory_order_relaxed);
}

/// A rank has arrived: uses its report of cache distance, and times a read of its probe.
void Exchanger::meet(int rank) {
  const Descriptor theirs = descriptor(rank);
  met_cache_local_ = met_cache_local_ && theirs.cache_local;
  if (theirs.probe) {
    distance_.probe(view_.staging(rank, sequence_));
  } else if (mode_of(rank) == Mode::staged && count_ % exchanges_per_probe == 0) {
    const Offer offered = offer(rank);
    // A pipelined giver may be about to write it
    const bool there = laid(rank) >= offered.where + CacheDistance::probe_bytes;
    if (offered.bytes >= CacheDistance::probe_bytes && there)
      distance_.probe(view_.staging(rank, sequence_) + offered.where);
  }
}

Task Exchanger::run(Exchange exchange) {
  co_await until([this] { return can_begin(); });
  next();
  const bool staged = exchange.mode == Mode::staged, pipelined = staged && exchange.pipelined;
  const std::size_t place = staged ? place_in_slot(exchange.give.total(ranks())) : 0;
  list_parts(exchange, place);
  if (staged && !pipelined) lay_out(exchange, place);
  introduce(exchange, place);
  arrive(exchange);
  if (pipelined) lay_out(exchange, place);
  if (exchange.scattered > 0) co_await scatter_out(exchange);
  copy_own(exchange);

  bool took_direct = false;
  std::vector<int> streaming;
  if (exchange.combine) {
    co_await reduce_all(exchange, took_direct, streaming);
  } else {
    co_await take_copies(exchange, took_direct, streaming);
  }
  if (exchange.mode == Mode::streamed || !streaming.empty()) co_await stream(exchange, std::move(streaming));
  if (took_direct) {
    read_barrier();         // the data first, then whether it still belonged to the giver; pairs with ShmLane::abort()
    if (view_.aborted()) {  // before or during the read, a giver may have got its memory back and changed it
      view_.throw_if_aborted();
      throw Error(ErrorKind::aborted, "the comm was aborted");
    }
    view_.finished(rank_).value.store(count_, std::memory_order_release);  // pairs with the acquire load in finished()
    wake();
  }
  if (exchange.mode == Mode::direct) {  // the caller may reuse its memory once all have read it
    for (int r = 0; r < ranks(); ++r) {
      if (r != rank_ && exchange.give.at(r).bytes != 0) readers_.push_back(r);
    }
    if (exchange.timed >= 0) co_await await_readers(exchange);
    for (int r : readers_) {
      co_await until([this, r, &exchange] {
        if (finished(r)) return true;
        if (arrived(r)) compare(exchange, r);  // a rank that called something else never reads
        return false;
      });
    }
    if (exchange.timed >= 0) note_path(exchange, all_here_);
  }
  ended(exchange);
}

/// A late reader would make the way seem slow, so the time counts from when all have arrived.
Task Exchanger::await_readers(const Exchange& exchange) {
  for (int r : readers_) {
    co_await until([this, r] { return arrived(r) || finished(r); });
    if (arrived(r)) compare(exchange, r);
  }
  all_here_ = std::chrono::steady_clock::now();
}

void Exchanger::note_path(const Exchange& exchange, Deadline since) {
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - since;
  broadcast_paths_.of(exchange.timed)
      .took(exchange.mode == Mode::streamed, static_cast<double>(exchange.give.bytes) / std::max(took.count(), 1.0));
}

Task Exchanger::take_copies(const Exchange& exchange, bool& took_direct, std::vector<int>& streaming) {
  std::size_t since_yield = 0;
  for (int i = 1; i < ranks(); ++i) {
    const int r = (rank_ + i) % ranks();  // each starts at another rank, so that not all read the same one
    const auto to = exchange.take.at(r);
    if (!exchange.waits_for_all && to.bytes == 0) continue;
    co_await until([this, r] { return arrived(r); });
    compare(exchange, r);
    meet(r);
    const Mode mode = mode_of(r);
    const Offer offered = offer(r);
    expect(exchange, r, offered.bytes, to.bytes);
    if (to.bytes == 0) continue;
    if (mode == Mode::streamed) {
      streaming.push_back(r);
    } else if (const int place = scattered_place(r); mode == Mode::staged || place >= 0) {
      // The giver of a scattered part waits for its reader as for those that read directly
      took_direct = took_direct || place >= 0;
      const std::size_t where = place >= 0 ? static_cast<std::size_t>(place) * offered.bytes : offered.where;
      const std::byte* from =
          place >= 0 ? view_.staging(rank_, sequence_) : view_.staging(r, sequence_) + offered.where;
      for (std::size_t done = 0; done < to.bytes;) {
        laying_ = r;
        co_await until([&] { return laid(r) > where + done; });
        const std::size_t now = std::min<std::size_t>(laid(r) - where, to.bytes) - done;
        copy(to.data + done, from + done, now, exchange.past_cache);
        done += now;
      }
      laying_ = -1;
    } else {
      took_direct = true;
      for (std::size_t done = 0; done < to.bytes; done += progress_quantum) {
        const std::size_t now = std::min(progress_quantum, to.bytes - done);
        read(to.data + done, r, offered.where + done, now);
        if (done + now < to.bytes) co_await yield_once();
      }
      since_yield = progress_quantum;
    }
    if ((since_yield += to.bytes) >= progress_quantum) {
      since_yield = 0;
      co_await yield_once();
    }
  }
}

Task Exchanger::reduce_all(const Exchange& exchange, bool& took_direct, std::vector<int>& streaming) {
  for (int r = 0; r < ranks(); ++r) {
    if (r == rank_) continue;
    co_await until([this, r] { return arrived(r); });
    compare(exchange, r);
    meet(r);
    expect(exchange, r, offer(r).bytes, exchange.into_bytes);
    // The totals differ
    if (mode_of(r) != exchange.mode) throw_mismatch(exchange.identity, exchange.identity, r, 0, 0);
    if (exchange.mode == Mode::streamed) streaming.push_back(r);
  }
  if (exchange.into_bytes == 0) {
    streaming.clear();
  } else if (exchange.mode == Mode::staged) {
    for (int r = 0; r < ranks(); ++r) {
      sources_[static_cast<std::size_t>(r)] = r == rank_ ? exchange.own : view_.staging(r, sequence_) + offer(r).where;
    }
    exchange.combine(exchange.into, sources_.data(), ranks(), exchange.into_bytes / exchange.element, exchange.divisor,
                     exchange.past_cache);
  } else if (exchange.mode == Mode::direct) {
    took_direct = true;
    co_await reduce_direct(exchange);
  }
}

Task Exchanger::reduce_direct(const Exchange& exchange) {
  // What is read from the peers is reduced while it is still in this core's cache: 1 MiB for all peers together was up
  // to a tenth faster than 64 to 256 KiB on a core with 1 MiB of L2.
  const auto others = static_cast<std::size_t>(std::max(1, ranks() - 1));
  const std::size_t chunk = std::max<std::size_t>(1u << 20, others * 8192) / others / 64 * 64;
  if (scratch_.size() < chunk * others) scratch_.resize(chunk * others);
  std::size_t since_yield = 0;
  for (std::size_t done = 0; done < exchange.into_bytes; done += chunk) {
    const std::size_t now = std::min(chunk, exchange.into_bytes - done);
    std::byte* place = scratch_.data();
    for (int r = 0; r < ranks(); ++r) {
      if (r == rank_) {
        sources_[static_cast<std::size_t>(r)] = exchange.own + done;
        continue;
      }
      read(place, r, offer(r).where + done, now);
      sources_[static_cast<std::size_t>(r)] = place;
      place += chunk;
    }
    exchange.combine(exchange.into + done, sources_.data(), ranks(), now / exchange.element, exchange.divisor,
                     exchange.past_cache);
    if ((since_yield += now * others) >= progress_quantum) {
      since_yield = 0;
      co_await yield_once();
    }
  }
}

}  // namespace medley::shm
