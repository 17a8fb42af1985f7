// Which memory an operation touches, and whether two operations may run at the same time.
// The engine asks this only when something is pending.
#pragma once

#include "core/operation.hpp"

namespace medley::core {

/// Exact intervals, one per segment of a v-form: a false conflict would be a wait that nobody wrote.
Accesses accesses_of(const Call& call, int ranks);

/// Whether one writes what the other reads or writes.
bool conflict(const Accesses& a, const Accesses& b);

}  // namespace medley::core
