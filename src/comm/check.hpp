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
  void rank(std::string_view what, int value) const {
    if (value < 0 || value >= comm.size) [[unlikely]]
      refuse_rank(what, value);
  }
  template <class AnyBuffer>
  [[gnu::always_inline]] void buffer(std::string_view what, const AnyBuffer& buffer) const {
    const bool plain = static_cast<int>(buffer.dtype) < dtype_count && buffer.memory == Memory::host &&
                       buffer.count >= 0 && buffer.count < surely_possible && (buffer.data || buffer.count == 0);
    if (!plain) [[unlikely]]
      look_closely(what, buffer);
  }
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

 private:
  /// No product of a count, the element size and the number of ranks may overflow. A division takes as long as all the
  /// other checks; below this count no int of ranks makes it necessary.
  static constexpr std::int64_t surely_possible = INT64_C(1) << 29;
  [[noreturn]] void refuse_rank(std::string_view what, int value) const;
  void look_closely(std::string_view what, const ConstBuffer& buffer) const;
};

}  // namespace medley::core
