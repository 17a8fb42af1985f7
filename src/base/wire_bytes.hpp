// The bytes that one rank sends over the wire for an operation, as the tables of `medley plan`, `trace` and `reconcile`
// count them.
#pragma once

#include <cstdint>
#include <medley/types.hpp>

namespace medley::core {

/// For a full tensor of `bytes` in a group of n, averaged over its ranks.
constexpr double wire_bytes(Op op, std::int64_t bytes, std::int64_t group_size) noexcept {
  const double s = static_cast<double>(bytes), n = static_cast<double>(group_size);
  switch (op) {
    case Op::send: return s;
    case Op::recv:
    case Op::barrier: return 0;
    case Op::all_reduce: return 2 * s * (n - 1) / n;
    default: return s * (n - 1) / n;
  }
}

}  // namespace medley::core
