// Traces in other formats: the JSON of CONTRACT.md, CSV with one line per operation, Chrome's trace format,
// which ui.perfetto.dev opens, and MLCommons' Chakra, which simulators replay.
#pragma once

#include <nlohmann/json.hpp>
#include <ostream>

#include "trace/problems.hpp"
#include "trace/skew.hpp"
#include "trace/summary.hpp"

namespace medley::trace {

nlohmann::ordered_json to_json(const std::vector<Row>& rows, const Trace& trace);
nlohmann::ordered_json totals_json(const std::vector<Row>& rows, const Trace& trace);
/// `histogram` and `small`.
nlohmann::ordered_json to_json(const Sizes& sizes);
nlohmann::ordered_json to_json(const Problems& problems, const Trace& trace);
nlohmann::ordered_json to_json(const std::vector<Skew>& skew, const Trace& trace);

void write_csv(const Trace& trace, std::ostream& out);
void write_perfetto(const Trace& trace, std::ostream& out);
/// FOLDER/medley.RANK.et for every rank, and FOLDER/comm_group.json, which names the ranks of each process group.
void write_chakra(const Trace& trace, const std::string& folder);

}  // namespace medley::trace
