// What two runs both measured, and how much it changed.
#pragma once

#include "report/fields.hpp"

namespace medley::report {

/// A list of {what, before, after} in µs: whole steps and operations that both measured, largest changes
/// first, a page's worth.
Json changes(const Json& before, const Json& after);

}  // namespace medley::report
