// Size conventions: converts the sizes of a call or of another tool's log to the full tensor of CONTRACT's
// `bytes`. All readers use this.
#pragma once

#include <cstdint>
#include <medley/types.hpp>

namespace medley::trace {

/// The full tensor in elements, from one rank's input and output in a group of `size`. A rank that is not the
/// root of a gather or scatter knows only its own part. All parts are equal, except in v-collectives, which
/// count only what is known.
constexpr std::int64_t full_count(Op op, std::int64_t in, std::int64_t out, std::int64_t size) noexcept {
  const std::int64_t larger = in > out ? in : out, smaller = in > out ? out : in;
  switch (op) {
    case Op::gather:
    case Op::scatter: return smaller > 0 || size <= 0 ? larger : larger * size;
    case Op::all_gather:
    case Op::all_gatherv: return out > 0 ? out : in * size;
    case Op::reduce_scatter:
    case Op::reduce_scatterv: return in > 0 ? in : out * size;
    case Op::all_to_allv: return in;
    case Op::barrier: return 0;
    default: return larger;
  }
}

}  // namespace medley::trace
