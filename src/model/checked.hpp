// Overflow-checked arithmetic on counts and bytes: a trillion-parameter model times a careless batch size
// must give an error message, not a negative volume. Used by everything in plan/ that multiplies sizes.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace medley::model {

/// A count of elements, parameters or bytes. Signed, so that differences are natural; never negative in
/// results.
using Count = std::int64_t;

/// The product of `factors`; throws Error(invalid) naming `what` when it exceeds 2^63−1.
Count product(std::initializer_list<Count> factors, std::string_view what = "size");
/// a + b, checked likewise.
Count sum(Count a, Count b, std::string_view what = "size");
/// ⌈a / b⌉ for a ≥ 0, b > 0.
constexpr Count ceil_div(Count a, Count b) noexcept { return a / b + (a % b != 0); }
/// a rounded up to a multiple of b.
Count round_up(Count a, Count b);

}  // namespace medley::model
