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

inline constexpr int table_version = 1;   ///< of the files; docs/formats.md has their history

/// Classes of element types that take equally long: only reductions depend on them.
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

/// How the ranks of a comm are placed. Two ranks of one host are 1 x 2, two ranks on two hosts 2 x 1.
struct Shape {
  int hosts = 1;
  int ranks_per_host = 1;   ///< of the fullest host
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

struct Key {
  Op op{};                               ///< send covers recv too
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
  double confidence = 0;                 ///< that the first is the fastest: 0.5 (no evidence) to 1
  const Timing* find(const Choice& route) const noexcept;
};

class MEDLEY_API Table {
 public:
  Machine machine;

  /// Throws Error(invalid) that names the wrong field; `name` is how messages call the table.
  static Table parse(std::string_view text, const std::string& name);
  static Table load(const std::filesystem::path& file);
  /// Readable JSON; equal tables give equal texts.
  std::string text() const;
  /// Writes a temporary file and renames it, so that a reader, or a kill at any time, finds a complete old or new one.
  void save(const std::filesystem::path& file) const;
  /// The hash of its text; for logs, and for ranks to compare.
  std::string hash() const;

  /// Sorted by key.
  const std::vector<Cell>& cells() const noexcept { return cells_; }
  const Cell* find(const Key& key) const noexcept;
  /// Adds the cell or replaces the one with its key; sorts its routes.
  void put(Cell cell);

 private:
  void sort();
  std::vector<Cell> cells_;
};

/// routes.json in $XDG_CACHE_HOME/medley or ~/.cache/medley; empty when there is no preferred directory.
MEDLEY_API std::filesystem::path cached_table();

}  // namespace medley::route
