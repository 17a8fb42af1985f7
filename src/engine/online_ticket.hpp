// The place of an operation among those whose routes are measured in the running job (online_routes.hpp). Kept by the
// operation.
#pragma once

#include <cstdint>

namespace medley::core {

struct OnlineTicket {
  static constexpr std::uint32_t none = UINT32_MAX;
  std::uint32_t slot = none;
  std::int32_t timed = -1;     ///< its number among the timed operations of its window; -1: it is not timed
  std::uint64_t window = 0;    ///< once it has its route
  std::uint64_t sequence = 0;  ///< its number among the comm's collectives

  bool takes_part() const { return slot != none; }
  bool is_timed() const { return timed >= 0; }
};

}  // namespace medley::core
