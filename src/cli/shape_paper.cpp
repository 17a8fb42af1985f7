// medley shape paper: the co-design paper's figures beside what the GPU models predict.
#include <fmt/format.h>

#include "cli/command.hpp"
#include "cli/shape.hpp"
#include "cli/shape_options.hpp"
#include "cli/table.hpp"
#include "shape/paper.hpp"

namespace medley::cli {
namespace {

using nlohmann::ordered_json;

std::string figure(const std::optional<double>& value) {
  return value ? fmt::format("{:.1f}", *value) : "";
}
ordered_json number(const std::optional<double>& value) {
  return value ? ordered_json(*value) : ordered_json();
}

int show_paper(const std::string& name, const std::string& json) {
  const auto gpu = shape::GpuModel::named(name);
  Table table(
      {"figure", "shape", "unit", "published", "measured on", "predicted there", "predicted for " + name});
  ordered_json rows = ordered_json::array();
  for (const auto& row : shape::paper_rows(gpu)) {
    table.add({row.figure, row.what, row.unit, figure(row.published), row.published ? row.paper_gpu : "",
               figure(row.there), figure(row.here)});
    rows.push_back({{"figure", row.figure},
                    {"shape", row.what},
                    {"unit", row.unit},
                    {"published", number(row.published)},
                    {"paper_gpu", row.paper_gpu},
                    {"predicted_there", number(row.there)},
                    {"predicted_here", number(row.here)}});
  }
  if (json != "-")
    fmt::print("{}\n{}\nPublished: arXiv 2401.14489. Its GPUs are predicted from their datasheets.\n",
               table.str(), trust_line(gpu));
  write_json(json, {{"gpu", name}, {"calibrated", gpu.calibrated()}, {"rows", rows}});
  return 0;
}

}  // namespace

void add_shape_paper(CLI::App& shape) {
  auto gpu = std::make_shared<std::string>("h200-sxm"), json = std::make_shared<std::string>();
  CLI::App* command =
      add_command(shape, "paper", "The co-design paper's figures beside the predictions",
                  "medley shape paper --gpu h200-sxm", [gpu, json] { return show_paper(*gpu, *json); });
  command->add_option("--gpu", *gpu, "GPU name, such as h200-sxm");
  command->add_option("--json", *json, "Write the rows as JSON ('-' for stdout)");
}

}  // namespace medley::cli
