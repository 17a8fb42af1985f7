// medley shape search: the best shapes near a model, speed against the change of parameters.
#include <fmt/format.h>

#include "cli/shape.hpp"
#include "cli/shape_options.hpp"
#include "cli/table.hpp"
#include "cli/terminal.hpp"
#include "shape/rules.hpp"
#include "shape/search_shapes.hpp"

namespace medley::cli {
namespace {

struct SearchOptions : shape::SearchRequest {
  std::string parameters = "2%", depth = "20%", aspect = "40%", ffn_ratio = "20%", json;
};

void add_row(Table& table, std::string_view what, const shape::Candidate& c, bool calibrated) {
  table.add({std::string(what), std::to_string(c.hidden), std::to_string(c.heads), std::to_string(c.head_dim),
             std::to_string(c.ffn), std::to_string(c.layers), std::to_string(c.vocab),
             fmt::format("{:+.2f} %", 100 * c.parameters), shape::gain_text(c.gain, calibrated),
             fmt::format("{:.0f} %", 100 * c.efficiency)});
}

void print_search(const shape::SearchReport& report) {
  const shape::Bounds& bounds = report.bounds;
  const shape::SearchResult& found = report.found;
  const bool calibrated = report.gpu.calibrated();
  fmt::print(
      "{}\n{} shapes, {} distinct products, in {:.2f} s; within {:.1f} % of the parameters, {:.0f} % of "
      "the depth, "
      "{:.0f} % of hidden/layers, {:.0f} % of ffn/hidden\n\n",
      trust_line(report.gpu), found.candidates, found.products, report.seconds, 100 * bounds.parameters,
      100 * bounds.depth, 100 * bounds.aspect, 100 * bounds.ffn_ratio);
  Table table({"", "hidden", "heads", "head", "ffn", "layers", "vocab", "parameters", "speed", "efficiency"});
  add_row(table, "given", found.given, calibrated);
  for (const auto& c : found.pareto) add_row(table, "pareto", c, calibrated);
  add_row(table, "best per parameter", found.best_net, calibrated);
  fmt::print("{}\nSpeed is predicted; model quality is not: train a small one before you trust a shape.\n",
             table.str());
}

int run_search(SearchOptions options) {
  options.bounds.parameters = parse_share(options.parameters, "--params");
  options.bounds.depth = parse_share(options.depth, "--depth");
  options.bounds.aspect = parse_share(options.aspect, "--aspect");
  options.bounds.ffn_ratio = parse_share(options.ffn_ratio, "--ffn-ratio");
  ProgressBar bar;
  options.progress = bar.counting("hidden sizes");
  const shape::SearchReport report = shape::search_shapes(options);
  bar.clear();
  if (options.json != "-") print_search(report);
  write_json(options.json, to_json(report));
  return 0;
}

}  // namespace

void add_shape_search(CLI::App& shape) {
  auto options = std::make_shared<SearchOptions>();
  CLI::App* command = add_command(shape, "search", "The best shapes near a model: speed against parameters",
                                  "medley shape search --model gpt3-2.7b --gpu h200-sxm --micro-batch 4 --params 1%",
                                  [options] { return run_search(*options); });
  add_shape_model(*command, *options);
  add_shape_gpu(*command, *options);
  add_shape_layout(*command, *options, options->json);
  command->add_option("--params", options->parameters, "Tolerance of the parameter count");
  command->add_option("--depth", options->depth, "Tolerance of the number of layers");
  command->add_option("--aspect", options->aspect, "Tolerance of hidden over layers");
  command->add_option("--ffn-ratio", options->ffn_ratio, "Tolerance of the MLP's width over hidden");
  command->add_option("--hidden-step", options->bounds.hidden_step, "Hidden sizes tried are multiples of this");
  command->add_option("--ffn-step", options->bounds.ffn_step, "MLP widths tried are multiples of this on every rank");
  command->add_option("--threads", options->threads, "Threads (default: one for each core)");
}

}  // namespace medley::cli
