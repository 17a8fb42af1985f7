// Messages between two ranks of a comm beside Gloo's own collectives: envelopes of at most a few KiB, in order. A small
// message is inside its envelope (eager); a large one is announced by it and follows on its own slot (rendezvous).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace medley::gloo_backend {

enum class Kind : std::uint32_t {
  message,  ///< tag, bytes, and the data or, where that is longer than payload_bytes, the number of its slot
  done,     ///< the large message `number` has arrived
  taken,    ///< only the count of envelopes received, which every envelope carries
  where,    ///< asks which collective the peer is in
  here,     ///< the answer: `collectives` and what the latest one is, in words
  leaving,  ///< the sender closes the comm in order
  abort,    ///< the comm is aborted: tag is the kind of error, number the rank where it began, the payload the reason
  heard,    ///< acknowledges `leaving` or `abort`
};

struct Header {
  Kind kind{};
  std::int32_t tag = 0;
  std::uint64_t bytes = 0;        ///< of the whole message; otherwise of the payload
  std::uint64_t number = 0;       ///< of a large message between these two (or see abort)
  std::uint64_t taken = 0;        ///< envelopes the sender has received from the receiver
  std::uint64_t collectives = 0;  ///< native collectives the sender has begun
};

// 8 KiB: copying that is cheaper than the round trip that a slot of its own costs.
inline constexpr std::size_t envelope_bytes = 8192;
inline constexpr std::size_t payload_bytes = envelope_bytes - sizeof(Header);
// Receives posted for envelopes per peer: what arrives within them needs no round trip.
inline constexpr int envelopes_ready = 8;
// A sender keeps what it sent until it is acknowledged; an acknowledgement comes at least this often.
inline constexpr std::uint64_t taken_told_every = 32;

// Gloo's collectives use slots whose top byte is 1 to 8.
inline constexpr std::uint64_t envelope_slot = std::uint64_t{0x40} << 56;
inline std::uint64_t slot_of(std::uint64_t number) { return (std::uint64_t{0x41} << 56) | number; }

}  // namespace medley::gloo_backend
