// Tunes a whole step: times it over every single library, measures its operations one at a time for candidate routes,
// then searches the fastest assignment on the running step. For `medley tune --for`.
#pragma once

#include <medley/medley.hpp>
#include <string>
#include <vector>

#include "route/table.hpp"
#include "tune/step.hpp"
#include "tune/tuner.hpp"

namespace medley::tune {

struct StepTuneOptions {
  std::string name;                   ///< of the step, for people
  std::vector<std::string> backends;  ///< libraries and pairs that routes may take
  Memory memory = Memory::host;
  double seconds = 60;
  bool replace = false;  ///< the table may give up another step that it was tuned for, settled
};

/// Writes `table.step` and the cells of the step's operations. The table is read on rank 0 and is the same on all ranks
/// afterwards. If it already has this step, settled, a few samples check that this still holds. At any time the table
/// holds the best choice so far: a library, unless a mix was surely faster. Throws Error(invalid) where the table was
/// tuned for another step, unless that may be replaced. Collective.
void tune_step(Context& context, Step& step, const StepTuneOptions& options, route::Table& table,
               const TuneHooks& hooks);

}  // namespace medley::tune
