#include "cost/fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <medley/error.hpp>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cost/gemm_csv.hpp"
#include "cost/gemm_features.hpp"
#include "cost/trees.hpp"

namespace medley::cost {
namespace {

/// Mean of |log(predicted/measured)|, with residuals clipped at e: rejected kernels must not steer the
/// constants.
double misfit(const TileConstants& constants, int sms, std::span<const MeasuredGemm> samples) {
  double sum = 0;
  for (const auto& sample : samples)
    sum += std::min(std::abs(std::log(choose_tile(constants, sms, sample.gemm).us / sample.us)), 1.0);
  return sum / double(samples.size());
}

/// Coordinate descent with shrinking factors: a dozen constants, each with its own visible effect.
TileConstants fit_constants(const Gpu& gpu, std::span<const MeasuredGemm> samples) {
  std::vector<MeasuredGemm> some;  // a few thousand products show the effect of every constant
  const std::size_t stride = std::max<std::size_t>(1, samples.size() / 3000);
  for (std::size_t i = 0; i < samples.size(); i += stride) some.push_back(samples[i]);
  auto values = TileConstants::from_datasheet(gpu).values();
  double best = misfit(TileConstants::from_values(values), gpu.sms, some);
  for (double step : {1.3, 1.15, 1.07, 1.03})
    for (double& value : values)
      for (double factor : {step, 1 / step})
        for (int again = 0; again < 6; ++again) {
          const double kept = value;
          value *= factor;
          const double now = misfit(TileConstants::from_values(values), gpu.sms, some);
          if (now < best) {
            best = now;
            continue;
          }
          value = kept;
          break;
        }
  return TileConstants::from_values(values);
}

}  // namespace

std::vector<MeasuredGemm> read_sweep(const std::string& path) {
  const auto gemms = read_gemm_csv(path);
  std::ifstream file(path);
  std::vector<MeasuredGemm> samples;
  std::string line;
  int column = -1;
  while (std::getline(file, line)) {
    if (line.find_first_not_of(" \t\r") == std::string::npos || line[0] == '#') continue;
    std::istringstream cells(line);
    std::string cell;
    if (column < 0) {
      for (int i = 0; std::getline(cells, cell, ','); ++i)
        if (cell == "us") column = i;
      if (column < 0)
        throw Error(ErrorKind::invalid, fmt::format("{}: no column 'us'; a measured sweep is needed", path));
      continue;
    }
    for (int i = 0; i <= column && std::getline(cells, cell, ','); ++i) {
    }
    const double us = std::strtod(cell.c_str(), nullptr);
    if (!(us > 0)) throw Error(ErrorKind::invalid, fmt::format("{}: us = '{}' is not a time", path, cell));
    samples.push_back({gemms.at(samples.size()), us});
  }
  return samples;
}

bool held_out(const Gemm& g) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325ull;
  for (std::int64_t part : {g.m, g.n, g.k, g.batch, std::int64_t(g.layout), std::int64_t(g.type)}) {
    hash = (hash ^ std::uint64_t(part)) * 0x9e3779b97f4a7c15ull;
    hash ^= hash >> 29;
  }
  return hash % 2 == 1;
}

nlohmann::json fit_gemms(const Gpu& gpu, std::span<const MeasuredGemm> samples) {
  if (samples.size() < 200)
    throw Error(ErrorKind::invalid,
                fmt::format("{} measured products are too few to calibrate: at least 200 are needed", samples.size()));
  const TileConstants constants = fit_constants(gpu, samples);
  std::vector<float> rows;
  std::vector<double> targets;
  for (const auto& sample : samples) {
    const TileChoice choice = choose_tile(constants, gpu.sms, sample.gemm);
    const auto features = gemm_features(sample.gemm, choice, gpu.sms);
    rows.insert(rows.end(), features.begin(), features.end());
    targets.push_back(std::log(sample.us / choice.us));
  }
  // few measurements, few rules: a quick calibration stays with the physical model where it has little data
  const TreeOptions options{.trees = samples.size() > 6000 ? 300 : 100, .least_rows = 6};
  return {{"constants", constants.to_json()},
          {"trees", Trees::fit(rows, gemm_feature_count, targets, options).to_json()}};
}

Accuracy accuracy(std::span<const double> predicted, std::span<const MeasuredGemm> samples) {
  std::vector<double> errors;
  for (std::size_t i = 0; i < samples.size(); ++i) errors.push_back(std::abs(predicted[i] / samples[i].us - 1));
  if (errors.empty()) return {};
  std::ranges::sort(errors);
  double sum = 0;
  for (double error : errors) sum += error;
  return {.count = errors.size(),
          .mape = sum / double(errors.size()),
          .p95 = errors[errors.size() * 95 / 100],
          .worst = errors.back()};
}

Accuracy accuracy(const GpuModel& model, std::span<const MeasuredGemm> samples) {
  std::vector<double> predicted;
  for (const auto& sample : samples) predicted.push_back(model.predict_us(sample.gemm));
  return accuracy(predicted, samples);
}

}  // namespace medley::cost
