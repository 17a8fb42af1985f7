// Checks of every call's arguments before it reaches the engine; each failure is a sentence with the offending value.
#pragma once

#include <medley/buffer.hpp>
#include <medley/comm.hpp>
#include <string_view>

#include "engine/comm_state.hpp"

namespace medley::core {

/// Names the call in messages.
struct Checker {
  const CommState& comm;
  Op op;

  [[noreturn]] void refuse(const std::string& why) const;
  void rank(std::string_view what, int value) const;
  void buffer(std::string_view what, const ConstBuffer& buffer) const;
  /// CUDA memory must be on the context's device.
  void device(std::string_view what, const ConstBuffer& buffer) const;
  void same_type(const ConstBuffer& in, const ConstBuffer& out) const;
  void reduction(DType dtype, ReduceOp op) const;
  void count(std::string_view what, std::int64_t value, std::int64_t expected, std::string_view because) const;
  void parts(std::string_view what, const ConstBuffer& whole, const Parts& parts) const;
  /// The same for parts that are written: no two may share an element.
  void written_parts(std::string_view what, const ConstBuffer& whole, const Parts& parts) const;
  /// In and out may be the same memory at `in_place`, and must be disjoint otherwise.
  void overlap(const ConstBuffer& in, const ConstBuffer& out, const void* in_place_in, const void* in_place_out) const;
};

}  // namespace medley::core
