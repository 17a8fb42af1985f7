// The record of a send or a receive on host memory, in few stores. Used by the engine's short ways for messages.
#pragma once

#include <bit>
#include <cstddef>
#include <cstring>
#include <medley/sdk/memory_barrier.hpp>

#include "engine/comm_state.hpp"
#include "record/recorder.hpp"

namespace medley::core {

// Neighbouring fields are put together in registers and stored as one word. As separate bytes that are then read as a
// word, they would have to reach the cache first, behind the message's own line, which another core has.
template <class Field>
[[gnu::always_inline]] inline void store_word(Field& first, std::uint64_t word) {
  static_assert(std::endian::native == std::endian::little);
  std::memcpy(static_cast<void*>(&first), &word, sizeof word);
}
[[gnu::always_inline]] inline std::uint64_t word_of(std::uint32_t low, std::uint32_t high) {
  return low | std::uint64_t{high} << 32;
}
template <class Byte>
[[gnu::always_inline]] inline std::uint64_t byte_at(int place, Byte value) {
  return std::uint64_t{static_cast<std::uint8_t>(value)} << (8 * place);
}
static_assert(offsetof(Record, scope) == offsetof(Record, comm) + 4 &&
              offsetof(Record, tag) == offsetof(Record, root) + 4);
static_assert(offsetof(Record, op) % 8 == 0 && offsetof(Record, dtype) == offsetof(Record, op) + 1 &&
              offsetof(Record, memory) == offsetof(Record, op) + 3 &&
              offsetof(Record, state) == offsetof(Record, op) + 4 &&
              offsetof(Record, reason) == offsetof(Record, op) + 5 &&
              offsetof(Record, backend) == offsetof(Record, op) + 6 &&
              offsetof(Record, algorithm) == offsetof(Record, op) + 7);

/// What tells one message from another.
struct MessageFields {
  MessageFields(Op of_op, DType of_dtype, int peer, int tag, std::int64_t in, std::int64_t out)
      : op(of_op),
        dtype(of_dtype),
        peer_and_tag(word_of(static_cast<std::uint32_t>(peer), static_cast<std::uint32_t>(tag))),
        in_count(in),
        out_count(out) {}
  Op op;
  DType dtype;
  std::uint64_t peer_and_tag;
  std::int64_t in_count, out_count;
};

/// Engine::record() with what a message lacks left out. `completed`: 0 while it is pending.
[[gnu::always_inline]] inline Record& write_message_record(Recorder& recorder, const CommState& comm,
                                                           MessageFields message, const Route& route,
                                                           std::uint8_t algorithm, bool async, std::uint64_t issued,
                                                           std::uint64_t completed) {
  Record& record = recorder.next();
  record.sequence = comm.messages;
  record.issued = record.started = issued;
  record.completed = completed;
  record.in_count = message.in_count;
  record.out_count = message.out_count;
  static_assert(offsetof(Record, comm) == offsetof(Record, waited) + 40);
  std::memset(static_cast<void*>(&record.waited), 0, 40);  // and part_of, gpu_started, gpu_completed, gpu_waited
  store_word(record.comm, word_of(comm.note, recorder.scope()));
  store_word(record.root, message.peer_and_tag);
  store_word(record.op, byte_at(0, message.op) | byte_at(1, message.dtype) | byte_at(3, Memory::host) |
                            byte_at(4, RecordState::writing) | byte_at(5, route.reason) | byte_at(6, route.lane->note) |
                            byte_at(7, algorithm));
  record.flags = static_cast<std::uint8_t>((async ? record_async : 0) | (completed ? record_inline : 0));
  write_barrier();  // for readers of a running job, and of a killed one
  record.state = completed ? RecordState::complete : RecordState::started;
  return record;
}

}  // namespace medley::core
