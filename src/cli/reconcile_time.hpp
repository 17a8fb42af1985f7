// Prints expected against observed times, for `medley reconcile`.
#pragma once

#include "reconcile/time.hpp"

namespace medley::cli {

/// `all`: every row and every cause, not only the first ones.
void print_times(const reconcile::TimeReport& report, bool all);

}  // namespace medley::cli
