// A report as `medley reconcile --json` writes it.
#pragma once

#include <nlohmann/json.hpp>

#include "reconcile/reconcile_job.hpp"

namespace medley::reconcile {

/// Every difference with its rank and steps, then the rows of every rank.
nlohmann::ordered_json to_json(const ReconcileResult& result);

}  // namespace medley::reconcile
