// Plans and schedules as JSON, in the fields of CONTRACT.md: traces have the same rows, replay reads the
// entries.
#pragma once

#include <nlohmann/json.hpp>
#include <span>

#include "plan/framework.hpp"
#include "plan/volume.hpp"

namespace medley::plan {

nlohmann::ordered_json to_json(const Parameters& parameters);
nlohmann::ordered_json to_json(const Model& model);
nlohmann::ordered_json to_json(const Layout& layout);
nlohmann::ordered_json to_json(const std::vector<Row>& rows);
nlohmann::ordered_json to_json(const std::map<std::string_view, Total>& totals);
nlohmann::ordered_json to_json(const std::vector<Bin>& histogram);
/// An object of totals, total, histogram and small.
nlohmann::ordered_json to_json(const Volume& volume);

/// One rank's step: groups with their ranks and every entry in order, expanded. `us`, if a machine is given,
/// is the time of each entry: computation carries it, for replay.
nlohmann::ordered_json schedule_json(const Schedule& schedule, const Layout& layout, Count rank,
                                     std::span<const double> us = {});

}  // namespace medley::plan
