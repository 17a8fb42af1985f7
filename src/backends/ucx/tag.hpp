// The layout of tags: UCP matches on 64 bits, which hold the comm, the sender and the tag. Used by the lane, which
// writes tags, and by messages, which read the sender back.
#pragma once

#include <ucp/api/ucp.h>

#include <cstdint>

namespace medley::ucx {

/// The comm's number, chosen by the receiver; the sender's rank in the comm; the tag, whose 32 bits hold users' tags (0
/// to 2^31 -
/// 1) and those of filled-in collectives (negative) unchanged.
inline constexpr int comm_shift = 48, source_shift = 32;
inline constexpr int max_comms = 1 << 16;
inline constexpr int max_ranks = 1 << 16;

inline constexpr ucp_tag_t whole_mask = ~ucp_tag_t{0};
inline constexpr ucp_tag_t any_source_mask = whole_mask & ~(ucp_tag_t{0xffff} << source_shift);
inline constexpr ucp_tag_t comm_mask = ucp_tag_t{0xffff} << comm_shift;

constexpr ucp_tag_t make_tag(std::uint16_t comm, int source, int tag) {
  return (ucp_tag_t{comm} << comm_shift) | (static_cast<ucp_tag_t>(source & 0xffff) << source_shift) |
         static_cast<std::uint32_t>(tag);
}
constexpr int source_of(ucp_tag_t tag) { return static_cast<int>((tag >> source_shift) & 0xffff); }
static_assert(source_of(make_tag(65535, 65535, -1)) == 65535);

}  // namespace medley::ucx
