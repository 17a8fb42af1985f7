// A report as `medley reconcile --json` writes it.
#pragma once

#include <nlohmann/json.hpp>

#include "reconcile/reconcile_job.hpp"

namespace medley::reconcile {

/// Every difference with its rank and steps, then the rows of every rank; where times were compared, `time`, `exposed`
/// and `time_summary`.
nlohmann::ordered_json to_json(const ReconcileResult& result);

}  // namespace medley::reconcile
