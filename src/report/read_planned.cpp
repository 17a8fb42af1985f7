// What was computed without running anything: plans, matrix products, searches.
#include <fmt/format.h>

#include "report/formats.hpp"

namespace medley::report {
namespace {

std::string layout_text(const Node& layout) {
  std::string text;
  for (const char* key : {"dp", "tp", "pp", "cp", "ep"}) {
    const double size = layout.amount(key);
    if (size > 1 || (text.empty() && std::string_view(key) == "dp"))
      text += fmt::format("{}{}={:.0f}", text.empty() ? "" : ",", key, size);
  }
  const double zero = layout.amount("zero");
  return zero > 0 ? fmt::format("{},zero={:.0f}", text, zero) : text;
}

Json candidate(const Node& shape) {
  return shape.pick({{"hidden", Type::amount},
                     {"heads", Type::amount},
                     {"head_dim", Type::amount},
                     {"layers", Type::amount},
                     {"ffn", Type::amount},
                     {"vocab", Type::amount},
                     {"parameters_change", Type::number},
                     {"gain", Type::number, true},
                     {"gain_text", Type::text},
                     {"efficiency", Type::amount}});
}

}  // namespace

Json read_plan(const Node& file) {
  Json out = {{"model", file.at("model").text("name")},
              {"framework", file.text("framework")},
              {"layout", layout_text(file.at("layout"))},
              {"totals", Json::array()}};
  const Node textbook = file.at("textbook"), totals = file.at("totals");
  for (const auto& item : totals.whole().items()) {
    const char* group = item.key().c_str();
    Json total =
        totals.at(group).pick({{"bytes", Type::amount}, {"wire_bytes", Type::amount}, {"count", Type::amount}});
    total["group"] = item.key();
    total["textbook"] = textbook.has(group) ? Json(textbook.amount(group)) : Json();
    out["totals"].push_back(std::move(total));
  }
  out["histogram"] = Json::array();
  for (const Node& bin : file.list("histogram"))
    out["histogram"].push_back(bin.pick({{"low", Type::amount}, {"count", Type::amount}, {"bytes", Type::amount}}));
  out["small"] = file.at("small").pick(
      {{"limit", Type::amount}, {"share_of_count", Type::amount}, {"share_of_bytes", Type::amount}});
  out.update(
      file.pick({{"machine", Type::text, true}, {"step_us", Type::amount, true}, {"breakdown", Type::amounts, true}}));
  if (out["breakdown"].is_null()) out["breakdown"] = Json::object();
  return out;
}

Json read_shape(const Node& file) {
  Json out = file.pick({{"model", Type::text},
                        {"gpu", Type::text},
                        {"calibrated", Type::boolean},
                        {"step_us", Type::amount},
                        {"tflops_per_gpu", Type::amount},
                        {"efficiency", Type::amount}});
  out["gemms"] = Json::array();
  for (const Node& row : file.list("gemms"))
    out["gemms"].push_back(row.pick({{"name", Type::text},
                                     {"block", Type::text},
                                     {"pass", Type::text},
                                     {"count", Type::amount},
                                     {"m", Type::amount},
                                     {"n", Type::amount},
                                     {"k", Type::amount},
                                     {"batch", Type::amount},
                                     {"predicted_us", Type::amount},
                                     {"tflops", Type::amount},
                                     {"efficiency", Type::amount},
                                     {"lost_to", Type::text},
                                     {"lost_us", Type::amounts}}));
  out["advice"] = Json::array();
  for (const Node& row : file.list("advice"))
    out["advice"].push_back(row.pick({{"knob", Type::text},
                                      {"was", Type::number},
                                      {"now", Type::number},
                                      {"gain_text", Type::text},
                                      {"parameters_change", Type::number},
                                      {"why", Type::text}}));
  return out;
}

Json read_gemms(const Node& file) {
  Json out = file.pick({{"gpu", Type::text}, {"calibrated", Type::boolean}});
  out["rows"] = Json::array();
  for (const Node& row : file.list("rows"))
    out["rows"].push_back(row.pick({{"m", Type::amount},
                                    {"n", Type::amount},
                                    {"k", Type::amount},
                                    {"predicted_us", Type::amount},
                                    {"tflops", Type::amount},
                                    {"efficiency", Type::amount},
                                    {"lost_to", Type::text}}));
  return out;
}

Json read_lint(const Node& file) {
  Json out = {{"model", file.text("file")}, {"gpu", file.text("gpu")}, {"findings", Json::array()}};
  for (const Node& row : file.list("findings"))
    out["findings"].push_back(row.pick({{"key", Type::text},
                                        {"value", Type::number},
                                        {"better", Type::number, true},
                                        {"waste", Type::number, true},
                                        {"why", Type::text}}));
  return out;
}

Json read_search(const Node& file) {
  Json out = file.pick(
      {{"model", Type::text}, {"gpu", Type::text}, {"calibrated", Type::boolean}, {"candidates", Type::amount}});
  out["given"] = candidate(file.at("given"));
  out["best_per_parameter"] = candidate(file.at("best_per_parameter"));
  out["pareto"] = Json::array();
  for (const Node& shape : file.list("pareto")) out["pareto"].push_back(candidate(shape));
  return out;
}

}  // namespace medley::report
