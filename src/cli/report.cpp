// medley report: shows what the commands wrote into a folder, as one HTML page.
#include <fmt/format.h>

#include <algorithm>

#include "base/write_file.hpp"
#include "cli/command.hpp"
#include "report/page.hpp"

namespace medley::cli {
namespace {

struct ReportArguments {
  std::string folder, against, output = "report.html", json;
};

std::ptrdiff_t files_of(const nlohmann::ordered_json& run, const std::string& status) {
  return std::count_if(run["files"].begin(), run["files"].end(),
                       [&](const auto& file) { return file["status"] == status; });
}

/// ", 2 files that …"; nothing where there are none.
std::string also(std::ptrdiff_t files, const char* which) {
  return files == 0 ? "" : fmt::format(", {} file{} {}", files, files == 1 ? "" : "s", which);
}

void print_run(const nlohmann::ordered_json& run) {
  const std::ptrdiff_t shown = files_of(run, "used");
  fmt::print("{}: shows {} file{}{}{}\n", run["name"].get<std::string>(), shown, shown == 1 ? "" : "s",
             also(files_of(run, "not used"), "left out"), also(files_of(run, "refused"), "that cannot be read"));
  for (const auto& file : run["files"]) {
    if (file["status"] == "refused")
      fmt::print("  cannot read {}: {}\n", file["file"].get<std::string>(), file["why"].get<std::string>());
  }
  for (const auto& finding : run["findings"]) {
    if (finding["headline"].get<bool>()) fmt::print("  {}\n", finding["sentence"].get<std::string>());
  }
}

int run_report(const ReportArguments& given) {
  const nlohmann::ordered_json report = report::make_report(given.folder, given.against, given.output);
  const std::string page = report::page_of(report);
  core::write_file(given.output, [&](std::ostream& out) { out << page; });
  write_json(given.json, report);
  if (given.json == "-") return 0;
  for (const auto& run : report["runs"]) print_run(run);
  fmt::print("wrote {} ({} KiB), which any browser opens without a network\n", given.output, page.size() / 1024);
  return 0;
}

}  // namespace

void add_report(CLI::App& app) {
  auto given = std::make_shared<ReportArguments>();
  CLI::App* command = add_command(app, "report", "One HTML page of what the commands wrote into a folder",
                                  "medley tune -n 2 -o out/routes.json && medley report out -o out/report.html",
                                  [given] { return run_report(*given); });
  command
      ->add_option("DIR", given->folder,
                   "A folder with files of info, bench, tune, plan, replay, reconcile and shape (--json), "
                   "and with traces")
      ->required();
  command->add_option("--against", given->against,
                      "A second folder, such as an earlier run: both are shown side by side");
  names_file(command->add_option("-o,--output", given->output, "The page")->capture_default_str());
  add_json(*command, given->json, "the page's data also");
}

}  // namespace medley::cli
