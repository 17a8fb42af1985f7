// How an operation on CUDA memory is split into operations on pinned memory: which bytes are copied in, what the host
// backend does, which bytes are copied out. Used by the staged lane; independent of CUDA.
#pragma once

#include <cstddef>
#include <cstdint>
#include <medley/backend.hpp>
#include <vector>

namespace medley::core {

/// Bytes that one piece moves each way: large compared with the cost of starting a copy, small enough that the copies
/// of a few pieces overlap. Chosen, not measured.
inline constexpr std::int64_t piece_bytes = 2 << 20;

/// Precedes a message and gives its length, since a receive buffer may be larger.
struct MessageHeader {
  std::int64_t bytes;
  std::int64_t unused;
};

/// A range of the user's memory and its offset in the piece's pinned memory.
struct Copy {
  std::byte* user;
  std::int64_t at;
  std::int64_t bytes;
};

struct Piece {
  Call call;  ///< for the host backend, on the pinned memory
  std::vector<Copy> in, out;
  std::vector<std::int64_t> parts;  ///< what the call's counts and offsets point into
};

/// All ranks split an operation in the same way, since the inputs of the decision are equal on all of them.
class StagedPlan {
 public:
  StagedPlan(const Call& call, int rank, int ranks);

  /// For receives: as far as known before the header has arrived.
  std::int64_t pieces() const { return pieces_; }
  /// Pinned memory that every piece needs.
  std::int64_t room() const { return room_; }
  /// Piece number `index` on pinned memory; the header of a send is written there.
  Piece piece(std::int64_t index, std::byte* memory) const;

  bool is_receive() const { return call_.op == Op::recv; }
  /// A receive learns the number of pieces and the sender from the first piece; false if the message does not fit.
  bool learn(const MessageHeader& header, int source);
  std::int64_t message_bytes() const { return message_bytes_; }

 private:
  Piece equal_parts(std::int64_t index, std::byte* memory) const;
  Piece unequal_parts(std::byte* memory) const;
  Piece message(std::int64_t index, std::byte* memory) const;
  Piece fused(std::byte* memory) const;
  bool many_in() const;
  bool many_out() const;

  Call call_;
  int rank_, ranks_;
  std::int64_t element_;
  std::int64_t part_ = 0;  ///< elements of one part
  std::int64_t step_ = 0;  ///< elements of one part that a piece takes
  std::int64_t pieces_ = 1;
  std::int64_t room_ = 0;
  std::int64_t message_bytes_ = 0;
  bool fits_ = true;
};

}  // namespace medley::core
