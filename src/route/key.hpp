// What a measured time belongs to: operation, memory, class of element types, shape of the comm and size. Used by route
// tables and by the steps they were tuned for.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <map>
#include <medley/export.hpp>
#include <medley/types.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace medley::route {

/// Classes of element types that take equally long: only reductions depend on them.
enum class DTypeClass : std::uint8_t { any, floating, half, integer };
inline constexpr int dtype_class_count = 4;
MEDLEY_API std::string_view name(DTypeClass dtype) noexcept;

constexpr DTypeClass class_of(Op op, DType dtype) noexcept {
  if (!reduces(op)) return DTypeClass::any;
  switch (dtype) {
    case DType::f64:
    case DType::f32: return DTypeClass::floating;
    case DType::f16:
    case DType::bf16: return DTypeClass::half;
    default: return DTypeClass::integer;
  }
}

/// Ranks of the largest comm that a table may describe.
inline constexpr std::int64_t most_ranks = 1 << 20;

/// How the ranks of a comm are placed. Two ranks of one host are 1 x 2, two ranks on two hosts 2 x 1.
struct Shape {
  int hosts = 1;
  int ranks_per_host = 1;  ///< of the fullest host
  auto operator<=>(const Shape&) const = default;
};
MEDLEY_API std::string text(const Shape& shape);
/// From the host of each of a comm's ranks.
template <class Host>
Shape shape_of(const std::vector<Host>& host_of_each) {
  std::map<Host, int> ranks_on;
  Shape shape{0, 0};
  for (const Host& host : host_of_each) shape.ranks_per_host = std::max(shape.ranks_per_host, ++ranks_on[host]);
  shape.hosts = static_cast<int>(ranks_on.size());
  return shape;
}

/// The host of each rank where each host has a block of as many ranks.
inline std::vector<int> hosts_in_blocks(const Shape& shape) {
  std::vector<int> hosts;
  for (int rank = 0; rank < shape.hosts * shape.ranks_per_host; ++rank) hosts.push_back(rank / shape.ranks_per_host);
  return hosts;
}

/// The operation whose rows and routes it uses: a receive takes those of its send.
constexpr Op routed_as(Op op) noexcept { return op == Op::recv ? Op::send : op; }

struct Key {
  Op op{};  ///< send covers recv too
  Memory memory = Memory::host;
  DTypeClass dtype = DTypeClass::any;
  Shape shape{};
  std::int64_t bytes = 0;  ///< of the whole tensor
  auto operator<=>(const Key&) const = default;
};

}  // namespace medley::route
