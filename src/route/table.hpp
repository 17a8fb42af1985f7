// A measured set of routes: for every operation, size, comm shape, kind of memory and class of element type, how long
// each route took. Written by `medley tune`, read by contexts, `medley explain` and the planner.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <medley/export.hpp>
#include <medley/rules.hpp>

#include "route/key.hpp"
#include "route/machine.hpp"
#include "route/tuned_step.hpp"

namespace medley::route {

inline constexpr int table_version = 2;  ///< of the files; docs/formats.md has their history

/// One route's time in one cell.
struct Timing {
  Choice route;  ///< the algorithm is always named; "native": the library's own
  double median_us = 0;
  double low_us = 0, high_us = 0;  ///< 95 % interval of the median
  std::int64_t samples = 0;
};

struct MEDLEY_API Cell {
  Key key;
  std::vector<Timing> routes;  ///< fastest first, never empty
  double confidence = 0;       ///< that the first is the fastest: 0.5 (no evidence) to 1
  const Timing* find(const Choice& route) const noexcept;
};

/// Many tensors of one size, all_reduced one by one and fused.
struct FusionTiming {
  std::int64_t bytes = 0;                ///< of one tensor
  double separate_us = 0, fused_us = 0;  ///< medians, for all tensors together
};

/// When fusion pays on comms of one shape, over the table's own routes.
struct MEDLEY_API FusionRow {
  Memory memory = Memory::host;
  Shape shape{};
  std::string backend{};              ///< of calls that name it; empty: over the table's own routes
  std::vector<FusionTiming> sizes{};  ///< ascending, never empty
  /// The largest size up to which tensors were faster fused at every size; 0: they never were.
  std::int64_t limit() const noexcept;
};

/// What an operation over a library adds to those over the preferred library around it, on comms of one shape.
struct MixingCost {
  Memory memory = Memory::host;
  Shape shape{};
  std::string library{};
  double us = 0;
};

class MEDLEY_API Table {
 public:
  Machine machine;
  std::optional<TunedStep> step;  ///< the step that it was tuned for, whose routes come before those of the cells

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

  /// Sorted by memory, shape and backend.
  const std::vector<FusionRow>& fusion() const noexcept { return fusion_; }
  /// Adds the row or replaces the one for its memory, shape and backend; sorts its sizes.
  void put(FusionRow row);
  /// Bytes of the largest tensors to fuse on a comm of this shape, where that was measured.
  std::optional<std::int64_t> fusion_limit(Memory memory, const Shape& shape,
                                           std::string_view backend = {}) const noexcept;

  /// Sorted by memory, shape and library.
  const std::vector<MixingCost>& mixing() const noexcept { return mixing_; }
  /// Adds it or replaces that of its memory, shape and library.
  void put(MixingCost cost);
  /// µs that an operation over this backend, or over one made of two, costs others; 0 where that was not measured.
  double mixing_us(Memory memory, const Shape& shape, std::string_view backend) const noexcept;

 private:
  void sort();
  std::vector<Cell> cells_;
  std::vector<FusionRow> fusion_;
  std::vector<MixingCost> mixing_;
};

/// Throws Error(invalid) if Table::save() could not write this file.
MEDLEY_API void check_can_save(const std::filesystem::path& file);

/// The hash that tables and the steps in them are named by.
MEDLEY_API std::string hash_of(std::string_view text);

/// routes.json in $XDG_CACHE_HOME/medley or ~/.cache/medley; empty when there is no home directory.
MEDLEY_API std::filesystem::path cached_table();
/// The file that contexts read where no table is named: MEDLEY_TABLE's or, if that is unset, the cached one. Empty: none.
MEDLEY_API std::filesystem::path default_table();
/// The file that a command reads: `named` or, if that is empty, the default. Throws Error(invalid) where there is none.
MEDLEY_API std::filesystem::path table_to_read(const std::string& named);

}  // namespace medley::route
