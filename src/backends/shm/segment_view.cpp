#include "backends/shm/segment_view.hpp"

#include <algorithm>
#include <bit>
#include <medley/sdk/peer_abort.hpp>

namespace medley::shm {
namespace {

std::size_t round_up(std::size_t value, std::size_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

Geometry::Geometry(int n) : ranks(n) {
  const auto count = static_cast<std::size_t>(n);
  // Up to 256 KiB per slot, and 8 MiB of staging per comm of any size.
  slot_bytes = std::clamp<std::size_t>(std::bit_floor((std::size_t{8} << 20) / depth / count), 16u << 10, 256u << 10);
  pipe_bytes = std::clamp<std::size_t>(std::bit_floor((std::size_t{4} << 20) / count / count), 4u << 10, 64u << 10);
  pipe_cells = pipe_bytes / 4 / sizeof(Cell);
  table_offset =
      depth * sizeof(Line) + counters_per_rank * sizeof(Counter) + round_up(count * sizeof(std::uint64_t), 64);
  area_bytes = round_up(table_offset + depth * count * sizeof(TableEntry), 128);
  staging_offset = round_up(sizeof(Header) + count * area_bytes, 4096);
  pipes_offset = staging_offset + count * depth * slot_bytes;
  total = round_up(pipes_offset + count * count * pipe_stride(), 4096);
}

void SegmentView::throw_if_aborted() const {
  // Pairs with the release store in ShmLane::abort()
  const std::uint32_t by = header().aborted.load(std::memory_order_acquire);
  if (by == 0 || by == abort_being_written) return;
  throw peer_abort(static_cast<int>(by) - 1, header().kind, header().reason,
                   {header().at_fault, header().at_fault + header().ranks_at_fault});
}

}  // namespace medley::shm
