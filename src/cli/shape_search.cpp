// medley shape search: the best shapes near a model, speed against the change of parameters.
#include <fmt/format.h>

#include <chrono>
#include <medley/error.hpp>

#include "cli/command.hpp"
#include "cli/shape.hpp"
#include "cli/shape_options.hpp"
#include "cli/table.hpp"
#include "shape/rules.hpp"
#include "shape/search.hpp"

namespace medley::cli {
namespace {

using nlohmann::ordered_json;

struct SearchOptions : ShapeOptions {
  std::string parameters = "2%", depth = "20%", aspect = "40%", ffn_ratio = "20%";
  shape::Bounds steps;
  unsigned threads = 0;
};

ordered_json to_json(const shape::Candidate& c, bool calibrated) {
  return {{"hidden", c.hidden},
          {"heads", c.heads},
          {"kv_heads", c.kv_heads},
          {"head_dim", c.head_dim},
          {"layers", c.layers},
          {"ffn", c.ffn},
          {"vocab", c.vocab},
          {"parameters_change", c.parameters},
          {"gain", calibrated ? ordered_json(c.gain) : ordered_json()},
          {"gain_text", shape::gain_text(c.gain, calibrated)},
          {"tflops", c.tflops},
          {"efficiency", c.efficiency}};
}

void add_row(Table& table, std::string_view what, const shape::Candidate& c, bool calibrated) {
  table.add({std::string(what), std::to_string(c.hidden), std::to_string(c.heads), std::to_string(c.head_dim),
             std::to_string(c.ffn), std::to_string(c.layers), std::to_string(c.vocab),
             fmt::format("{:+.2f} %", 100 * c.parameters), shape::gain_text(c.gain, calibrated),
             fmt::format("{:.0f} %", 100 * c.efficiency)});
}

int search_shapes(const SearchOptions& options) {
  const auto gpu = shape::GpuModel::named(options.gpu);
  const auto model = shape_model(options.model, options.as);
  const auto work = options.workload(model);
  shape::Bounds bounds = options.steps;
  bounds.parameters = parse_share(options.parameters, "--params");
  bounds.depth = parse_share(options.depth, "--depth");
  bounds.aspect = parse_share(options.aspect, "--aspect");
  bounds.ffn_ratio = parse_share(options.ffn_ratio, "--ffn-ratio");
  const auto start = std::chrono::steady_clock::now();
  const auto result = shape::search(gpu, model, work, bounds, options.threads);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const bool calibrated = gpu.calibrated();
  if (options.json != "-") {
    fmt::print(
        "{}\n{} shapes, {} distinct products, in {:.2f} s; within {:.1f} % of the parameters, {:.0f} % of "
        "the depth, "
        "{:.0f} % of hidden/layers, {:.0f} % of ffn/hidden\n\n",
        trust_line(gpu), result.candidates, result.products, seconds, 100 * bounds.parameters,
        100 * bounds.depth, 100 * bounds.aspect, 100 * bounds.ffn_ratio);
    Table table(
        {"", "hidden", "heads", "head", "ffn", "layers", "vocab", "parameters", "speed", "efficiency"});
    add_row(table, "given", result.given, calibrated);
    for (const auto& c : result.pareto) add_row(table, "pareto", c, calibrated);
    add_row(table, "best per parameter", result.best_net, calibrated);
    fmt::print("{}\nSpeed is predicted; model quality is not: train a small one before you trust a shape.\n",
               table.str());
  }
  ordered_json pareto = ordered_json::array();
  for (const auto& c : result.pareto) pareto.push_back(to_json(c, calibrated));
  write_json(options.json, {{"model", model.name},
                            {"gpu", gpu.gpu().name},
                            {"calibrated", calibrated},
                            {"candidates", result.candidates},
                            {"products", result.products},
                            {"seconds", seconds},
                            {"bounds",
                             {{"parameters", bounds.parameters},
                              {"depth", bounds.depth},
                              {"aspect", bounds.aspect},
                              {"ffn_ratio", bounds.ffn_ratio}}},
                            {"given", to_json(result.given, calibrated)},
                            {"pareto", pareto},
                            {"fastest", to_json(result.fastest, calibrated)},
                            {"best_per_parameter", to_json(result.best_net, calibrated)},
                            {"quality", "not predicted"}});
  return 0;
}

}  // namespace

void add_shape_search(CLI::App& shape) {
  auto options = std::make_shared<SearchOptions>();
  CLI::App* command =
      add_command(shape, "search", "The best shapes near a model: speed against parameters",
                  "medley shape search --model gpt3-2.7b --gpu h200-sxm --micro-batch 4 --params 1%",
                  [options] { return search_shapes(*options); });
  options->add_model(*command);
  options->add_gpu(*command);
  options->add_layout(*command);
  command->add_option("--params", options->parameters, "Tolerance of the parameter count");
  command->add_option("--depth", options->depth, "Tolerance of the number of layers");
  command->add_option("--aspect", options->aspect, "Tolerance of hidden over layers");
  command->add_option("--ffn-ratio", options->ffn_ratio, "Tolerance of the MLP's width over hidden");
  command->add_option("--hidden-step", options->steps.hidden_step,
                      "Hidden sizes tried are multiples of this");
  command->add_option("--ffn-step", options->steps.ffn_step,
                      "MLP widths tried are multiples of this on every rank");
  command->add_option("--threads", options->threads, "Threads (default: one for each core)");
}

}  // namespace medley::cli
