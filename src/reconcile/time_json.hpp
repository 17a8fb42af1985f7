// Expected against observed time, as `medley reconcile --json` writes it.
#pragma once

#include <nlohmann/json.hpp>

#include "reconcile/time.hpp"

namespace medley::reconcile {

/// An object of `time` (rows), `exposed` (causes, worst first) and `time_summary`; what is not known is null.
nlohmann::ordered_json to_json(const TimeReport& report);

}  // namespace medley::reconcile
