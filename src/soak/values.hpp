// Numbers as the oracle sees them: the value of an element, and which inputs have one exact result in any
// order of combining. Shares no code with the kernels it checks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <medley/types.hpp>
#include <vector>

namespace medley::soak {

bool floating(DType dtype);
/// Of a floating type.
double value_of(DType dtype, const std::byte* at);

/// Eight bytes of elements made from random bits: any integers, bools of 0 and 1, floats that are small
/// integers.
void fill_word(std::byte* to, DType dtype, std::uint64_t bits);

/// Whether the elements at `inputs` (one pointer per rank) combine to the same bits in every order and
/// grouping: integers always do; floats do when all are integral and every partial result is small enough to
/// be exact.
bool exact(DType dtype, ReduceOp op, const std::vector<const std::byte*>& inputs);

/// Combines one element of each rank into `to`.
void combine(std::byte* to, DType dtype, ReduceOp op, const std::vector<const std::byte*>& inputs);

}  // namespace medley::soak
