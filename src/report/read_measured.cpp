// What was measured: backends, operations, whole steps, replays.
#include <fmt/format.h>

#include "report/formats.hpp"

namespace medley::report {

Json read_info(const Node& file) {
  Json out = file.pick({{"version", Type::text}, {"cores", Type::amount}, {"operations", Type::texts}});
  out["backends"] = Json::array();
  for (const Node& backend : file.list("backends")) {
    Json row = backend.pick({{"name", Type::text},
                             {"available", Type::boolean},
                             {"reason", Type::text},
                             {"version", Type::text},
                             {"memory", Type::texts}});
    row["ops"] = Json::object();
    const Node ops = backend.at("ops");
    for (const std::string op : out["operations"])
      if (ops.has(op.c_str())) row["ops"][op] = ops.text(op.c_str());
    out["backends"].push_back(std::move(row));
  }
  return out;
}

Json read_bench(const Node& file) {
  Json out = file.pick({{"ranks", Type::amount}, {"hosts", Type::amount}});
  out["rows"] = Json::array();
  for (const Node& row : file.list("rows"))
    out["rows"].push_back(row.pick({{"op", Type::text},
                                    {"backend", Type::text},
                                    {"algorithm", Type::text},
                                    {"memory", Type::text},
                                    {"dtype", Type::text},
                                    {"counts", Type::text},
                                    {"bytes", Type::amount},
                                    {"median_us", Type::amount},
                                    {"mad_us", Type::amount},
                                    {"p99_us", Type::amount},
                                    {"iterations", Type::amount}}));
  return out;
}

Json read_steps(const Node& file) {
  Json out = file.pick({{"ranks", Type::amount}, {"hosts", Type::amount, true}});
  out["rows"] = Json::array();
  for (const Node& row : file.list("mixes"))
    out["rows"].push_back(row.pick({{"mix", Type::text},
                                    {"backend", Type::text},
                                    {"memory", Type::text},
                                    {"median_us", Type::amount},
                                    {"mad_us", Type::amount},
                                    {"p99_us", Type::amount},
                                    {"iterations", Type::amount}}));
  return out;
}

Json read_replay(const Node& file) {
  Json out = file.pick({{"schedule", Type::text},
                        {"ranks", Type::amount},
                        {"step_us", Type::amounts},
                        {"predicted_us", Type::amounts, true},
                        {"calibrated_us", Type::amounts, true}});
  for (const char* key : {"predicted_us", "calibrated_us"}) {
    if (out[key].is_null()) out[key] = Json::object();
    for (const auto& item : out[key].items())
      if (!out["step_us"].contains(item.key()))
        file.refuse(fmt::format("{} has a time of \"{}\", step_us has none", key, item.key()));
  }
  return out;
}

}  // namespace medley::report
