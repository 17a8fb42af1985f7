#include "cost/attention_model.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <medley/error.hpp>
#include <nlohmann/json.hpp>

namespace medley::cost {
namespace {

constexpr std::size_t feature_count = 9;

std::array<float, feature_count> features(const Attention& a) {
  const double rows = double(a.batch) * double(a.heads);
  return {float(a.head_dim),
          float(std::log2(double(a.seq_q))),
          float(std::log2(double(a.seq_k))),
          float(std::log2(rows)),
          float(double(a.heads) / double(a.kv_heads)),
          a.causal ? 1.f : 0.f,
          float(std::log2(a.flops())),
          float(a.head_dim & -a.head_dim),
          float((a.head_dim + 31) / 32)};
}

std::size_t place(AttentionKernel kernel, bool backward) {
  return (kernel == AttentionKernel::cudnn ? 2u : 0u) + (backward ? 1u : 0u);
}
constexpr std::array<const char*, 4> kernel_names{"flash_forward", "flash_backward", "cudnn_forward", "cudnn_backward"};

}  // namespace

double Attention::flops() const noexcept {
  return (causal ? 2.0 : 4.0) * double(batch) * double(heads) * double(seq_q) * double(seq_k) * double(head_dim) *
         share;
}

AttentionModel::AttentionModel(const TileConstants& constants)
    : peak_tflops_(constants.tflops[0]), launch_us_(constants.launch_us) {}

AttentionModel::AttentionModel(const TileConstants& constants, const nlohmann::json& calibration)
    : AttentionModel(constants) {
  for (std::size_t i = 0; i < kernel_names.size(); ++i)
    corrections_[i] = Trees::from_json(calibration.at(kernel_names[i]));
}

/// The backward pass has five products, the forward pass two. FlashAttention 2 reaches half the GEMM rate
/// forward and a third backward on A100 and H200; heads narrower than 128 leave part of the tensor cores'
/// tiles empty.
double AttentionModel::base_us(const Attention& a, bool backward) const {
  const double filled = std::min(1.0, 0.4 + 0.6 * double(a.head_dim) / 128);
  const double rate = peak_tflops_ * (backward ? 0.35 : 0.5) * filled;
  return a.flops() * (backward ? 2.5 : 1.0) / rate * 1e-6 + 2 * launch_us_;
}

double AttentionModel::us(const Attention& a, bool backward, AttentionKernel kernel) const {
  if (a.batch < 1 || a.heads < 1 || a.kv_heads < 1 || a.seq_q < 1 || a.seq_k < 1 || a.head_dim < 1)
    throw Error(ErrorKind::invalid,
                fmt::format("attention of batch {}, {} heads ({} kv), lengths {} and {}, head dimension {}: "
                            "each must be at least 1",
                            a.batch, a.heads, a.kv_heads, a.seq_q, a.seq_k, a.head_dim));
  const Trees& correction = corrections_[place(kernel, backward)];
  const double base = base_us(a, backward);
  return correction.empty() ? base : base * std::exp(correction.predict(features(a)));
}

nlohmann::json AttentionModel::fit(const TileConstants& constants, const std::vector<MeasuredAttention>& samples) {
  const AttentionModel plain(constants);
  nlohmann::json parts;
  for (const auto kernel : {AttentionKernel::flash, AttentionKernel::cudnn})
    for (const bool backward : {false, true}) {
      std::vector<float> rows;
      std::vector<double> targets;
      for (const auto& sample : samples) {
        if (sample.kernel != kernel) continue;
        const auto row = features(sample.attention);
        rows.insert(rows.end(), row.begin(), row.end());
        targets.push_back(
            std::log((backward ? sample.backward_us : sample.forward_us) / plain.base_us(sample.attention, backward)));
      }
      const TreeOptions options{.trees = 80, .leaves = 12, .least_rows = 4, .rate = 0.15, .shrink = 0.5, .outlier = 1};
      parts[kernel_names[place(kernel, backward)]] =
          targets.empty() ? nlohmann::json::array() : Trees::fit(rows, feature_count, targets, options).to_json();
    }
  return parts;
}

std::vector<MeasuredAttention> read_attention_csv(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line) || !line.starts_with("backend,b,heads,kv,s,d,causal,forward_us,backward_us"))
    throw Error(ErrorKind::invalid, fmt::format("{}: not a list of attention measurements", path));
  std::vector<MeasuredAttention> samples;
  while (std::getline(file, line)) {
    char backend[16] = {};
    long long b = 0, heads = 0, kv = 0, s = 0, d = 0;
    int causal = 0;
    MeasuredAttention sample;
    if (std::sscanf(line.c_str(), "%15[^,],%lld,%lld,%lld,%lld,%lld,%d,%lf,%lf", backend, &b, &heads, &kv, &s, &d,
                    &causal, &sample.forward_us, &sample.backward_us) != 9)
      throw Error(ErrorKind::invalid, fmt::format("{}: cannot read '{}'", path, line));
    const std::string_view named = backend;
    if (named != "flash" && named != "cudnn") continue;
    sample.kernel = named == "flash" ? AttentionKernel::flash : AttentionKernel::cudnn;
    sample.attention = {
        .batch = b, .heads = heads, .kv_heads = kv, .seq_q = s, .seq_k = s, .head_dim = d, .causal = causal != 0};
    samples.push_back(sample);
  }
  return samples;
}

}  // namespace medley::cost
