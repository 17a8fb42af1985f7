// Which tensors travel together: a function of the calls alone, so that all ranks of a comm decide alike.
#pragma once

#include <chrono>
#include <cstdint>
#include <medley/backend.hpp>
#include <medley/options.hpp>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fuse/fusion.hpp"

namespace medley::fuse {

/// Fused messages have at most this many bytes on their larger side: at the largest tensors that fusion pays for, a
/// message of this size has spread its fixed cost over dozens of them, and its buffer still fits a core's cache.
inline constexpr std::int64_t most_message_bytes = 4 << 20;

/// Bytes of the largest tensors that are fused; the same on all ranks. The defaults apply where no table says what
/// pays.
struct Limits {
  /// Packing copies a tensor twice, which takes longer than a message of more bytes saves
  std::int64_t host = 32 << 10;
  std::int64_t cuda = 256 << 10;  ///< a group on nccl copies nothing; a staged tensor is copied in any case
  /// On host memory, of calls that name their backend: what a message costs differs between backends.
  std::vector<std::pair<std::string, std::int64_t>> of_backend{};
  std::int64_t of(Memory memory, std::string_view backend) const {
    if (memory == Memory::cuda) return cuda;
    for (const auto& [name, limit] : of_backend) {
      if (name == backend) return limit;
    }
    return host;
  }
};

/// Of a backend without a measured limit (bench/fusion, 16 cores). Where messages are copies inside a host, one costs
/// little, and more with every rank: two ranks gain 1.3 times at 2 KiB and lose from 16 KiB on; eight gain 8 times at 1
/// KiB and 1.1 times at 16 KiB (shm). Between hosts eight ranks gain 2.8 times at 16 KiB and 1.1 times at 64 KiB (ucx).
/// Libraries inside a host lie between.
constexpr std::int64_t default_host_limit(int ranks, int hosts, bool copies_inside_host) {
  if (hosts > 1) return 64 << 10;
  if (!copies_inside_host) return 16 << 10;
  const std::int64_t most = Limits{}.host, inside = std::int64_t{1024} * ranks;
  return inside < most ? inside : most;
}

/// One collective, with the options of its call that decide its route.
struct Member {
  Call call{};
  std::string backend{};
  std::string algorithm{};
  std::chrono::nanoseconds deadline{0};

  Member() = default;
  Member(const Call& made, const Options& options)
      : call(made),
        backend(options.backend == "auto" ? "" : options.backend),
        algorithm(made.algorithm),
        deadline(options.deadline) {}
};

/// One operation to issue: several members in one message, several one after the other (Fusion::is_series), or one
/// member as it is.
struct Composed {
  Call call{};
  std::shared_ptr<Fusion> fusion{};      ///< null: a single member
  std::vector<std::uint32_t> members{};  ///< by index, in issue order
  const Member* first = nullptr;         ///< its route's options; all members have the same
  std::chrono::nanoseconds deadline{0};  ///< the shortest of the members'; 0: the comm's
  bool series = false;                   ///< while it is composed; then the fusion says it
};

/// Bytes of the larger side of a call; the same on all ranks.
MEDLEY_API std::int64_t larger_side(const Call& call, int rank, int ranks);

/// What becomes of tensors above the limit: an operation each, for Works of their own; or, on host memory, one
/// operation that starts them one after the other, which takes less than half the instructions.
enum class Large : std::uint8_t { apart, in_series };

/// Tensors within the limits are fused where they agree in operation, root, memory, options and, if they are combined,
/// in type and reduction; all others move as bytes. Larger ones that agree in all of these and in type make a series,
/// if asked for. Those with a codec or error feedback of their own, and those that are alone, stay as they are.
/// Operations are ordered by their first tensors. `members` outlive the result.
MEDLEY_API std::vector<Composed> compose(std::span<const Member> members, int rank, int ranks, const Limits& limits,
                                         Large large = Large::apart);
/// The operation of some of a series' tensors, by index in it: a series again, or a single member.
MEDLEY_API Composed part_of_series(const Composed& series, std::span<const std::uint32_t> tensors, int rank, int ranks);

}  // namespace medley::fuse
