// How the elements of one reduction are combined in transit. f16 and bf16 travel as f32 and are rounded
// once, at the end; all other types travel unchanged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <medley/types.hpp>

#include <medley/sdk/reduce.hpp>

namespace medley::algorithms {

/// "User" is the type of the caller's buffers, "wire" that of partial results.
class Combiner {
 public:
  Combiner(DType dtype, ReduceOp op, int ranks);

  bool widens() const { return widens_; }
  std::size_t user() const { return user_; }  ///< bytes of an element
  std::size_t wire() const { return wire_; }

  /// wire = user
  void load(std::byte* wire, const std::byte* user, std::int64_t count) const;
  /// wire = wire op wire; `into` may be one of them.
  void combine(std::byte* into, const std::byte* first, const std::byte* second, std::int64_t count) const;
  /// wire = wire op user
  void add(std::byte* into, const std::byte* partial, const std::byte* input, std::int64_t count) const;
  /// user = (wire op user) / divisor, rounded: the last step.
  void finish_with(std::byte* out, const std::byte* partial, const std::byte* input, std::int64_t count) const;
  /// user = wire / divisor, rounded; may be in place where both types are the same.
  void finish(std::byte* out, const std::byte* partial, std::int64_t count) const;
  /// user = (sources[0] op sources[1] op …) / divisor, in that order, rounded once.
  void finish_all(std::byte* out, const std::byte* const* sources, int n, std::int64_t count) const;

 private:
  DType dtype_;
  bool widens_;
  std::size_t user_, wire_;
  ReduceFn of_user_, of_wire_;
  int divisor_;
};

}  // namespace medley::algorithms
