#include "cost/calibration.hpp"

#include <fmt/format.h>

#include <fstream>
#include <medley/error.hpp>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/write_file.hpp"
#include "cost/attention_model.hpp"
#include "cost/stream_model.hpp"

namespace medley::cost {
namespace {

/// The words after `key` up to the next comma or the line's end.
std::string after(const std::string& line, const std::string& key) {
  const auto at = line.find(key);
  if (at == std::string::npos) return "";
  const auto start = at + key.size();
  return line.substr(start, line.find_first_of(",\r\n", start) - start);
}

}  // namespace

CalibrationInputs describe_sweep(const std::string& path) {
  CalibrationInputs inputs;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line) && line.starts_with("#");) {
    if (line.starts_with("# gpu "))
      inputs = {.date = inputs.date,
                .device = after(line, "# gpu "),
                .driver = after(line, "driver "),
                .cuda = after(line, "CUDA "),
                .cublas = after(line, "cuBLAS "),
                .attention_csv = "",
                .stream_csv = "",
                .source = inputs.source,
                .like = inputs.like};
    if (line.starts_with("# date ")) inputs.date = after(line, "# date ");
  }
  return inputs;
}

nlohmann::ordered_json calibrate(const Gpu& gpu, std::span<const MeasuredGemm> samples,
                                 const CalibrationInputs& inputs) {
  nlohmann::ordered_json json{{"format", calibration_format}, {"gpu", gpu.name},           {"date", inputs.date},
                              {"device", inputs.device},      {"driver", inputs.driver},   {"cuda", inputs.cuda},
                              {"cublas", inputs.cublas},      {"products", samples.size()}};
  if (!inputs.source.empty()) json["source"] = inputs.source;
  if (!inputs.like.empty()) json.update({{"like", inputs.like}, {"attention_scale", inputs.attention_scale}});
  if (inputs.held_out_error > 0) json["held_out_error"] = inputs.held_out_error;
  json["gemm"] = fit_gemms(gpu, samples);
  if (!inputs.stream_csv.empty()) json["streams"] = StreamModel::fit(inputs.stream_csv);
  if (!inputs.attention_csv.empty())
    json["attention"] = AttentionModel::fit(TileConstants::from_json(json["gemm"]["constants"]),
                                            read_attention_csv(inputs.attention_csv));
  return json;
}

namespace {

void write(std::ostream& out, const nlohmann::ordered_json& json) {
  if (!json.is_object()) {
    // trees: an array of arrays, one per line
    if (json.is_array() && !json.empty() && json[0].is_array()) {
      out << "[";
      for (std::size_t i = 0; i < json.size(); ++i) out << (i ? ",\n" : "\n") << json[i].dump();
      out << "\n]";
    } else {
      out << json.dump();
    }
    return;
  }
  out << "{";
  bool first = true;
  for (const auto& [key, value] : json.items()) {
    out << (first ? "\n" : ",\n") << nlohmann::json(key).dump() << ": ";
    write(out, value);
    first = false;
  }
  out << "\n}";
}

}  // namespace

void write_calibration(const std::string& path, const nlohmann::ordered_json& calibration) {
  core::write_file(path, [&](std::ostream& out) {
    write(out, calibration);
    out << "\n";
  });
}

GpuModel calibrated_model(const Gpu& gpu, const std::string& path) {
  std::ifstream file(path);
  if (!file) throw Error(ErrorKind::invalid, fmt::format("cannot read the calibration {}: check that it exists", path));
  std::ostringstream text;
  text << file.rdbuf();
  return GpuModel(gpu, text.str(), path);
}

}  // namespace medley::cost
