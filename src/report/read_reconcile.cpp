// Expected against observed. Ranks with equal differences become one line, and the number of lines on a page is limited.
#include <unordered_map>

#include "report/formats.hpp"

namespace medley::report {
namespace {

constexpr std::size_t most_differences = 200;

Json side(const Node& line, const char* key) {
  return line.has(key) ? line.at(key).pick({{"bytes", Type::amount}, {"count", Type::amount}}) : Json();
}

Json difference(const Node& line) {
  Json out = line.pick({{"verdict", Type::text},
                        {"op", Type::text},
                        {"group", Type::text},
                        {"detail", Type::text, true},
                        {"cause", Type::text}});
  if (out["detail"].is_null()) out["detail"] = "";
  out["expected"] = side(line, "expected");
  out["observed"] = side(line, "observed");
  return out;
}

}  // namespace

Json read_reconcile(const Node& file) {
  Json out = file.pick({{"source", Type::text}});
  Json lines = Json::array();
  const double matched = file.amount("matched");
  double explained = 0, unexplained = 0;
  std::size_t left_out = 0;
  std::unordered_map<std::string, std::size_t> shown;  // a line without its rank, and its index in `lines`
  for (const Node& row : file.list("differences")) {
    Json line = difference(row);
    (line["cause"] == "" ? unexplained : explained) += 1;
    const auto [place, fresh] = shown.emplace(line.dump(), lines.size());
    if (!fresh && place->second < lines.size()) {
      lines[place->second]["ranks"] = lines[place->second]["ranks"].get<int>() + 1;
    } else if (fresh && lines.size() < most_differences) {
      line["rank"] = row.has("rank") ? Json(row.amount("rank")) : Json();
      line["ranks"] = 1;
      lines.push_back(std::move(line));
    } else {
      ++left_out;
    }
  }
  out.update({{"matched", explained + unexplained == 0},
              {"rows_matched", matched},
              {"rows_explained", explained},
              {"rows_unexplained", unexplained},
              {"differences", std::move(lines)},
              {"differences_left_out", left_out},
              {"hypotheses", Json::array()}});
  for (const Node& row : file.list("hypotheses"))
    out["hypotheses"].push_back(
        row.pick({{"hypothesis", Type::text}, {"rows", Type::amount}, {"accepted", Type::boolean}}));
  return out;
}

}  // namespace medley::report
