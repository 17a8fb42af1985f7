// medley shape fit: turns a measured sweep into a calibration and says how well it predicts what it has not
// seen.
#include <fmt/format.h>

#include <map>

#include "cli/shape.hpp"
#include "cli/table.hpp"
#include "cost/calibration.hpp"
#include "cost/tile_model.hpp"
#include "shape/words.hpp"

namespace medley::cli {
namespace {

using shape::Accuracy;
using shape::MeasuredGemm;

struct FitOptions {
  std::string gpu = "h200-sxm", sweep, attention, streams, output, json, source, like;
  double attention_scale = 1;
};

std::string group_of(const MeasuredGemm& sample) {
  constexpr std::array<const char*, 4> classes{"2-byte rows", "4-byte rows", "8-byte rows",
                                               "16-byte rows and more"};
  return classes[std::size_t(alignment_class(sample.gemm))];
}

/// One row a group: what the model fitted to the other half gets wrong, and the plain roofline beside it.
void report(const shape::GpuModel& model, const std::vector<MeasuredGemm>& samples,
            const FitOptions& options) {
  std::map<std::string, std::vector<MeasuredGemm>> groups;
  for (const auto& sample : samples) {
    groups["all"].push_back(sample);
    groups["alignment: " + group_of(sample)].push_back(sample);
    groups["layout: " + std::string(name(sample.gemm.layout))].push_back(sample);
    groups["type: " + std::string(name(sample.gemm.type))].push_back(sample);
    groups[sample.gemm.batch > 1 ? "batched" : "single"].push_back(sample);
    groups[sample.us < 20    ? "time: under 20 us"
           : sample.us < 200 ? "time: 20 to 200 us"
                             : "time: over 200 us"]
        .push_back(sample);
    if (!sample.gemm.name.empty()) groups["family: " + sample.gemm.name.substr(0, 1)].push_back(sample);
  }
  Table table({"held out", "count", "MAPE", "p95", "worst", "roofline MAPE", "roofline p95"});
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const auto& [group, members] : groups) {
    std::vector<double> roofline;
    for (const auto& sample : members) roofline.push_back(model.roofline_us(sample.gemm));
    const Accuracy ours = accuracy(model, members), plain = shape::accuracy(roofline, members);
    const auto percent = [](double share) { return fmt::format("{:.1f} %", 100 * share); };
    table.add({group, std::to_string(ours.count), percent(ours.mape), percent(ours.p95), percent(ours.worst),
               percent(plain.mape), percent(plain.p95)});
    rows.push_back({{"group", group},
                    {"count", ours.count},
                    {"mape", ours.mape},
                    {"p95", ours.p95},
                    {"worst", ours.worst},
                    {"roofline_mape", plain.mape},
                    {"roofline_p95", plain.p95}});
  }
  if (options.json != "-") fmt::print("{}", table.str());
  write_json(options.json, {{"gpu", options.gpu}, {"rows", std::move(rows)}});
}

int fit(const FitOptions& options) {
  const shape::Gpu& gpu = shape::find_gpu(options.gpu);
  const auto samples = shape::read_sweep(options.sweep);
  auto inputs = shape::describe_sweep(options.sweep);
  std::vector<MeasuredGemm> seen, unseen;
  for (const auto& sample : samples) (held_out(sample.gemm) ? unseen : seen).push_back(sample);
  inputs.source = options.source;
  inputs.like = options.like;
  inputs.attention_scale = options.attention_scale;
  const shape::GpuModel half(gpu, calibrate(gpu, seen, inputs).dump());
  report(half, unseen, options);
  if (!options.output.empty()) {
    inputs.held_out_error = accuracy(half, unseen).mape;
    inputs.attention_csv = options.attention;
    inputs.stream_csv = options.streams;
    shape::write_calibration(options.output, calibrate(gpu, samples, inputs));
  }
  return 0;
}

}  // namespace

void add_shape_fit(CLI::App& shape) {
  auto options = std::make_shared<FitOptions>();
  CLI::App* command = add_command(
      shape, "fit", "Calibrate the GPU model from a measured sweep, and check it on a held-out half",
      "medley shape fit bench/shape/data/h200_sweep.csv -o h200.json", [options] { return fit(*options); });
  command->add_option("sweep", options->sweep, "CSV of medley shape bench")->required();
  command->add_option("--gpu", options->gpu, "GPU it was measured on")->capture_default_str();
  command->add_option("--attention", options->attention,
                      "CSV of attention times (bench/shape/torch_bench.py)");
  command->add_option("--streams", options->streams,
                      "CSV of memory-bound operations (medley shape bench --stream-csv)");
  command->add_option("--source", options->source,
                      "Where a published table comes from: repository, path, version");
  command->add_option(
      "--like", options->like,
      "A shipped GPU whose sweep gives what the table lacks: backward and unaligned products, attention");
  command->add_option("--attention-scale", options->attention_scale,
                      "With --like: attention's times against that GPU's, after the rates of both");
  command->add_option("-o,--output", options->output, "Write the calibration, fitted to all rows, here");
  command->add_option("--json", options->json, "Write the accuracy as JSON ('-' for stdout)");
}

}  // namespace medley::cli
