// Measures a route table: every operation and size of a job's shapes first, then more where routes are close or one gives
// way to another. Behind `medley tune`.
#pragma once

#include <functional>
#include <medley/medley.hpp>
#include <string>
#include <vector>

#include "route/table.hpp"

namespace medley::tune {

/// One operation that somebody is going to need.
struct NeededOperation {
  Op op{};
  DType dtype{};
  std::int64_t bytes = 0;   ///< of the whole tensor
};

struct TuneOptions {
  std::vector<Op> ops;
  std::vector<std::size_t> sizes;
  std::vector<std::string> backends;
  std::vector<DType> dtypes{DType::f32};   ///< one for each class of element types that reductions are measured with
  Memory memory = Memory::host;            ///< of the buffers; cells of the other in the table stay as they are
  double seconds = 60;
  std::vector<NeededOperation> exactly{};  ///< instead of all ops in all sizes: these, whose ops and dtypes are those above
};

struct TuneProgress {
  double seconds = 0;        ///< used so far
  std::size_t done = 0, of = 0;
  std::string now;           ///< the cell at work
};

struct TuneHooks {
  std::function<void(const route::Table&)> changed;     ///< after every cell, on rank 0
  std::function<void(const TuneProgress&)> progress;    ///< before every cell, on rank 0
  std::function<bool()> stop;                           ///< asked on rank 0
};

/// Adds to `table`, which counts on rank 0 and is the same on all ranks afterwards: cells it has and is sure of are not
/// measured again. Collective. Ends when nothing is left to find out, the time is used, or rank 0 is asked to stop.
void tune(Context& context, const TuneOptions& options, route::Table& table, const TuneHooks& hooks);

}  // namespace medley::tune
