#include "backends/shm/crossovers.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdint>

namespace medley::shm {
namespace {

constexpr std::size_t kib = 1024, mib = 1024 * kib;

// 2 ranks, compared in interleaved runs (docs/performance.md).
// 16 KiB all_reduce: one shot and two shots tie at 2.7 µs; more ranks read more in one shot.
constexpr std::size_t one_shot_of_all = 32 * kib, least_one_shot = 1 * kib;
// 16 KiB handed over: staged 2.7 µs, direct 4.8. 64 KiB: 10.6 and 11.4 on cores that share a cache,
// 35 and 18 on cores that do not.
constexpr std::size_t staged_piece = 16 * kib;
// Writing around the cache costs 30 % at 4 MiB and saves 8 % at 16 MiB and 13 % at 64 MiB, with 32 MiB of cache.
constexpr std::size_t share_of_cache = 4;

// Oversubscribed: 3, 4, 8 and 16 ranks on 2 cores, measured in interleaved runs. The segment against direct reads, 64
// KiB to 16 MiB: broadcast 1.7 to 5.3 times as fast, all_reduce 2.0 to 2.7, reduce 1.7 to 3.3, gather 1.7 to 3.0,
// all_gather 1.7 to 3.9. all_to_all of 16 ranks: 1.8 at 256 KiB, 1.2 at 4 MiB, 0.9 at 16 MiB. A scatter, whose root
// copies for all: 1.1 to 2.3 with up to 8 ranks, 0.7 to 0.9 with 16.
constexpr int oversubscribed_ranks = 3, oversubscribed_scatter_ranks = 8;
constexpr std::size_t oversubscribed_reduction = 16 * mib, oversubscribed_exchange = 4 * mib;
constexpr std::size_t oversubscribed_scatter = 4 * mib;

// A core per rank, and so many readers that the kernel is the bottleneck of direct reads.
constexpr int many_ranks = 4;
// all_reduce of 8 ranks on 16 cores, measured: 256 KiB staged 84 µs, direct 142; 1 MiB streamed 467, direct 519;
// 4 MiB streamed 1884, direct 1215.
constexpr std::size_t many_reduction = 1 * mib;
// 4, 8 and 16 ranks on 16 cores, measured by bench/mpi/rooted.sh. A one-shot broadcast through the segment, where the
// root stages step by step while its readers copy, is the fastest at every size. 16 ranks: 64 KiB 15.7 µs (two shots
// 22.4, all reading the root's memory 136), 1 MiB 179 (299, 1823), 4 MiB 733 (1031, 5867). So both limits below are
// unbounded.
constexpr std::size_t many_broadcast_one_shot = SIZE_MAX;
constexpr std::size_t many_broadcast_segment = SIZE_MAX;
// In a gather the peers stage in parallel and the root copies: 16 ranks 4 MiB 485 µs, direct 701; 4 ranks 372 and 497.
// Measured up to 1 MiB from each rank.
constexpr std::size_t many_gather_segment = 1 * mib;
// The root of a scatter stages alone: 8 ranks 256 KiB 29 µs, direct 36; 1 MiB 101 and 120; 4 MiB 499 and 254. With 16
// ranks both take the same up to 256 KiB, and 1 MiB 131 and 123.
constexpr std::size_t many_scatter_segment = 1 * mib, most_scatter_segment = 256 * kib;
constexpr int many_scatter_ranks = 8;
// Half of the parts of a mixed scatter go through the segment. 16 ranks: 256 KiB 20 µs (segment 33, direct 35), 1 MiB
// 72 (129, 135; a quarter of the parts 95, all of them 88); 4 ranks: 256 KiB 15 (21, 24), 1 MiB 57 (88, 99). At 64 KiB
// it gains up to a tenth.
constexpr std::size_t mixed_scatter = 64 * kib;

std::size_t last_level_cache() {
  const long bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
  return bytes > 0 ? static_cast<std::size_t>(bytes) : std::size_t{32} << 20;
}

}  // namespace

Crossovers::Crossovers(const Given& given)
    : one_shot(std::max(least_one_shot, one_shot_of_all / static_cast<std::size_t>(given.ranks))),
      broadcast_one_shot(SIZE_MAX),
      staged(given.direct_reads ? staged_piece : given.slot_bytes),
      scatter_staged(std::min(given.slot_bytes, staged * static_cast<std::size_t>(given.ranks))),
      reduction_segment(0),
      broadcast_segment(0),
      gather_segment(0),
      scatter_segment(0),
      least_mixed_scatter(SIZE_MAX),
      scattered(given.ranks / 2),
      exchange_segment(0),
      past_cache(last_level_cache() / share_of_cache),
      pipelined(!given.oversubscribed) {
  if (!given.direct_reads || !given.may_stream) return;  // nothing to choose
  if (given.oversubscribed && given.ranks >= oversubscribed_ranks) {
    reduction_segment = oversubscribed_reduction;
    broadcast_segment = gather_segment = SIZE_MAX;
    exchange_segment = oversubscribed_exchange;
    if (given.ranks <= oversubscribed_scatter_ranks) scatter_segment = oversubscribed_scatter;
  } else if (!given.oversubscribed && given.ranks >= many_ranks) {
    reduction_segment = many_reduction;
    broadcast_one_shot = many_broadcast_one_shot;
    broadcast_segment = many_broadcast_segment;
    gather_segment = many_gather_segment;
    scatter_segment = given.ranks <= many_scatter_ranks ? many_scatter_segment : most_scatter_segment;
    least_mixed_scatter = mixed_scatter;
  }
}

}  // namespace medley::shm
