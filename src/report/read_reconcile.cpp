// Expected against observed. Ranks with equal differences become one line, and the number of lines on a page is
// limited.
#include <unordered_map>

#include "report/formats.hpp"

namespace medley::report {
namespace {

constexpr std::size_t most_differences = 200, most_waits = 12;

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

/// The name of a file or folder without the path to it: the page is read elsewhere.
std::string last_name(const std::string& path) {
  const std::size_t end = path.find_last_not_of('/');
  if (end == std::string::npos) return path;
  const std::string trimmed = path.substr(0, end + 1);
  return trimmed.substr(trimmed.rfind('/') + 1);
}

/// Where times were compared: why programs waited, the longest waits first. Null where they were not.
Json times(const Node& file) {
  if (!file.has("time_summary")) return {};
  const Node summary = file.at("time_summary");
  Json out = summary.pick({{"expected_by", Type::text},
                           {"steps", Type::amount},
                           {"step_us", Type::amount, true},
                           {"exposed_us", Type::amount, true},
                           {"causes", Type::amounts, true},
                           {"remarks", Type::texts}});
  out["expected_by"] = last_name(out["expected_by"]);
  out["waits"] = Json::array();
  for (const Node& wait : file.list("exposed")) {
    if (out["waits"].size() == most_waits) break;
    out["waits"].push_back(wait.pick({{"cause", Type::text}, {"us", Type::amount}, {"sentence", Type::text}}));
  }
  return out;
}

}  // namespace

Json read_reconcile(const Node& file) {
  Json out = file.pick({{"source", Type::text}});
  out["source"] = last_name(out["source"]);
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
  out["time"] = times(file);
  return out;
}

}  // namespace medley::report
