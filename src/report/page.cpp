#include "report/page.hpp"

#include <medley/error.hpp>
#include <medley/version.hpp>
#include <string_view>

#include "report/collect.hpp"
#include "report/compare.hpp"
#include "report/findings.hpp"

namespace medley::embedded {
extern const std::string_view report_page;
}

namespace medley::report {

Json make_report(const std::string& folder, const std::string& against, const std::string& output) {
  Json report = {{"schema", "medley.report/1"},
                 {"version", MEDLEY_VERSION_TEXT},
                 {"runs", Json::array()},
                 {"changes", Json::array()}};
  for (const std::string& each : {folder, against}) {
    if (each.empty()) continue;
    Json run = collect(each, output);
    run["name"] = each;
    run["findings"] = find(run);
    run["not_measured"] = not_measured(run, each);
    report["runs"].push_back(std::move(run));
  }
  if (report["runs"].size() == 2) report["changes"] = changes(report["runs"][1], report["runs"][0]);
  return report;
}

std::string escaped(const Json& data) {
  // Names come from programs and from other tools' files, and need not be UTF-8.
  const std::string text = data.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string out;
  out.reserve(text.size() + text.size() / 16);
  for (const char c : text) {
    if (c == '<') out += "\\u003c";  // in JSON it occurs only inside of texts
    else out += c;
  }
  return out;
}

std::string page_of(const Json& report) {
  constexpr std::string_view mark = "MEDLEY_REPORT_DATA";
  const std::string_view page = embedded::report_page;
  const std::size_t place = page.find(mark);
  if (place == std::string_view::npos)
    throw Error(ErrorKind::system, "the embedded report page has no place for its data; build it again from web/");
  std::string out(page.substr(0, place));
  out += escaped(report);
  return out += page.substr(place + mark.size());
}

}  // namespace medley::report
