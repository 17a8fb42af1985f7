// Measures a route table: first every operation and size of a job's shapes, then more where routes are close or one
// replaces another. For `medley tune`.
#pragma once

#include <functional>
#include <medley/medley.hpp>
#include <string>
#include <vector>

#include "route/table.hpp"

namespace medley::tune {

/// One operation that a program will need.
struct NeededOperation {
  Op op{};
  DType dtype{};
  std::int64_t bytes = 0;  ///< of the whole tensor
};

struct TuneOptions {
  std::vector<Op> ops;
  std::vector<std::size_t> sizes;
  std::vector<std::string> backends;
  std::vector<DType> dtypes{DType::f32};  ///< one for each class of element types that reductions are measured with
  Memory memory = Memory::host;           ///< of the buffers; cells of the other kind in the table are kept
  double seconds = 60;
  /// Measured on every backend too; `auto` uses them only where a rule allows it
  std::vector<std::string> codecs{};
  std::vector<NeededOperation> exactly{};  ///< replaces all ops in all sizes: these, with ops and dtypes from above
  std::vector<route::Shape> shapes{};      ///< only these or, of what the job has, the nearest; empty: all it has
};

struct TuneProgress {
  double seconds = 0;  ///< used so far
  std::size_t done = 0, of = 0;
  std::string now;  ///< the cell being measured
};

struct TuneHooks {
  std::function<void(const route::Table&)> changed;   ///< after every cell, on rank 0
  std::function<void(const TuneProgress&)> progress;  ///< before every cell, on rank 0
  std::function<bool()> stop;                         ///< called on rank 0
};

/// Adds to `table`, which is read on rank 0 and is the same on all ranks afterwards. Cells it already has with
/// confidence are not measured again. Collective. Ends when nothing is left to decide, the time is used, or `stop` on
/// rank 0 returns true.
void tune(Context& context, const TuneOptions& options, route::Table& table, const TuneHooks& hooks);

/// Writes the hardware and the versions of the context's libraries into the table; others that it has stay.
void name_machine(const Context& context, route::Table& table);
/// Broadcasts rank 0's table, whose times are then the same on every rank to the last bit: the other ranks may not even
/// see its file. Collective.
void share_table(Comm& world, route::Table& table);

}  // namespace medley::tune
