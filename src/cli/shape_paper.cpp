// medley shape paper: the co-design paper's figures beside what the GPU models predict.
#include "shape/paper.hpp"

#include <fmt/format.h>

#include "cli/shape.hpp"
#include "cli/shape_options.hpp"
#include "cli/table.hpp"

namespace medley::cli {
namespace {

struct PaperOptions : shape::PaperRequest {
  std::string json;
};

std::string figure(const std::optional<double>& value) { return value ? fmt::format("{:.1f}", *value) : ""; }

void print_paper(const shape::PaperResult& result) {
  Table table({"figure", "shape", "unit", "published", "measured on", "predicted there",
               "predicted for " + result.gpu.gpu().name, "why they differ"});
  for (const shape::PaperRow& row : result.rows)
    table.add({row.figure, row.what, row.unit, figure(row.published), row.published ? row.paper_gpu : "",
               figure(row.there), figure(row.here), row.note});
  fmt::print("{}\n{}\nPublished: arXiv 2401.14489.\n", table.str(), trust_line(result.gpu));
}

int show_paper(const PaperOptions& options) {
  const shape::PaperResult result = shape::redo_paper(options);
  if (options.json != "-") print_paper(result);
  write_json(options.json, to_json(result));
  return 0;
}

}  // namespace

void add_shape_paper(CLI::App& shape) {
  auto options = std::make_shared<PaperOptions>();
  CLI::App* command = add_command(shape, "paper", "The co-design paper's figures beside the predictions",
                                  "medley shape paper --gpu h200-sxm", [options] { return show_paper(*options); });
  command->add_option("--gpu", options->gpu, "GPU name, such as h200-sxm");
  add_json(*command, options->json, "the rows");
}

}  // namespace medley::cli
