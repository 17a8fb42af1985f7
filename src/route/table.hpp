// A measured set of routes: for every operation, size, comm shape, kind of memory and class of element type, how long
// each route took. Written by `medley tune`, read by contexts, `medley explain` and the planner.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <medley/export.hpp>
#include <medley/rules.hpp>
#include <medley/types.hpp>

#include "route/machine.hpp"

namespace medley::route {

inline constexpr int table_version = 1;

/// Element types that take equally long: only reductions tell them apart.
enum class DTypeClass : std::uint8_t { any, floating, half, integer };
inline constexpr int dtype_class_count = 4;
MEDLEY_API std::string_view name(DTypeClass dtype) noexcept;

constexpr DTypeClass class_of(Op op, DType dtype) noexcept {
  if (!reduces(op)) return DTypeClass::any;
  switch (dtype) {
    case DType::f64: case DType::f32: return DTypeClass::floating;
    case DType::f16: case DType::bf16: return DTypeClass::half;
    default: return DTypeClass::integer;
  }
}

/// How the ranks of a comm are spread. A pair inside a host is 1 x 2, a pair across hosts 2 x 1.
struct Shape {
  int hosts = 1;
  int ranks_per_host = 1;   ///< of the fullest host
  auto operator<=>(const Shape&) const = default;
};
MEDLEY_API std::string text(const Shape& shape);
/// Of a comm, by the host of each of its ranks.
template <class Host>
Shape shape_of(const std::vector<Host>& host_of_each) {
  std::map<Host, int> ranks_on;
  Shape shape{0, 0};
  for (const Host& host : host_of_each) shape.ranks_per_host = std::max(shape.ranks_per_host, ++ranks_on[host]);
  shape.hosts = static_cast<int>(ranks_on.size());
  return shape;
}

struct Key {
  Op op{};                               ///< send stands for recv too
  Memory memory = Memory::host;
  DTypeClass dtype = DTypeClass::any;
  Shape shape{};
  std::int64_t bytes = 0;                ///< of the whole tensor
  auto operator<=>(const Key&) const = default;
};

/// One route's time in one cell.
struct Timing {
  Choice route;                          ///< the algorithm is always named; "native": the library's own
  double median_us = 0;
  double low_us = 0, high_us = 0;        ///< 95 % interval of the median
  std::int64_t samples = 0;
};

struct MEDLEY_API Cell {
  Key key;
  std::vector<Timing> routes;            ///< fastest first, never empty
  double confidence = 0;                 ///< that the first is the fastest: 0.5 (a coin) to 1
  const Timing* find(const Choice& route) const noexcept;
};

class MEDLEY_API Table {
 public:
  Machine machine;

  /// Throws Error(invalid) with the place that is wrong; `name` is what messages call the table.
  static Table parse(std::string_view text, const std::string& name);
  static Table load(const std::filesystem::path& file);
  /// Readable JSON, the same for equal tables.
  std::string text() const;
  /// Written beside it and renamed, so that a reader or a kill at any moment finds the old or the new one whole.
  void save(const std::filesystem::path& file) const;
  /// Of its text; for logs, and for ranks to compare.
  std::string hash() const;

  /// In the order of their keys.
  const std::vector<Cell>& cells() const noexcept { return cells_; }
  const Cell* find(const Key& key) const noexcept;
  /// Adds it or takes the place of the one with its key; its routes are put in order.
  void put(Cell cell);

 private:
  void sort();
  std::vector<Cell> cells_;
};

/// routes.json in $XDG_CACHE_HOME/medley or ~/.cache/medley; empty when there is no preferred.
MEDLEY_API std::filesystem::path cached_table();

}  // namespace medley::route
