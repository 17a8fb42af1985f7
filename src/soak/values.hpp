// Numbers as the oracle sees them: what an element is worth, and which inputs give one exact result whatever
// the order they are combined in. Shares nothing with the kernels it judges.
#pragma once

#include <cstddef>
#include <cstdint>
#include <medley/types.hpp>
#include <vector>

namespace medley::soak {

bool floating(DType dtype);

/// Eight bytes of elements made from random bits: any integers, bools of 0 and 1, floats that are small whole
/// numbers.
void fill_word(std::byte* to, DType dtype, std::uint64_t bits);

/// Whether the elements at `inputs` (one pointer per rank) combine to the same bits in every order and
/// grouping: integers always do; floats when all are whole and every partial result is small enough to be
/// exact.
bool exact(DType dtype, ReduceOp op, const std::vector<const std::byte*>& inputs);

/// Combines one element of each rank into `to`.
void combine(std::byte* to, DType dtype, ReduceOp op, const std::vector<const std::byte*>& inputs);

}  // namespace medley::soak
