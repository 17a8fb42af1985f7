// The operations that a backend implements natively on every rank of a job. Queried once and agreed when a context is
// created, so that no rank later calls a library's own collective where another rank fills it in.
#pragma once

#include <bitset>
#include <medley/backend.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace medley::core {

class Capabilities {
 public:
  Capabilities() = default;
  explicit Capabilities(const Backend& backend);

  bool native(Op op, DType dtype, ReduceOp reduce, Memory memory) const {
    return bits_[index(op, dtype, reduce, memory)];
  }
  bool has_memory(Memory memory) const { return bits_[memory_bits + static_cast<std::size_t>(memory)]; }
  bool fixed_order() const { return bits_[order_bit]; }
  bool has(Trait trait) const { return bits_[trait_bits + static_cast<std::size_t>(trait)]; }
  /// The backend's own algorithms for an operation, in alphabetical order.
  std::vector<std::string> algorithms(Op op) const;
  bool has_algorithm(Op op, std::string_view algorithm) const;
  void keep_common(const Capabilities& other);
  bool operator==(const Capabilities&) const = default;

  std::string to_text() const;
  static Capabilities from_text(const std::string& text);

 private:
  static constexpr std::size_t memory_kinds = 2;
  static constexpr std::size_t memory_bits = std::size_t{op_count} * dtype_count * reduce_op_count * memory_kinds;
  static constexpr std::size_t order_bit = memory_bits + memory_kinds;
  static constexpr std::size_t trait_bits = order_bit + 1;
  static constexpr std::size_t index(Op op, DType dtype, ReduceOp reduce, Memory memory) {
    const auto row = (static_cast<std::size_t>(op) * dtype_count + static_cast<std::size_t>(dtype)) * reduce_op_count;
    return (row + static_cast<std::size_t>(reduce)) * memory_kinds + static_cast<std::size_t>(memory);
  }
  std::bitset<trait_bits + trait_count> bits_;
  std::set<std::string> algorithms_;  ///< OPERATION/NAME
};

}  // namespace medley::core
