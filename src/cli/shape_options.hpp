// The options that `medley shape` and its subcommands share: which model, which GPU, how it is laid out.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "cost/gpu_model.hpp"
#include "model/model.hpp"
#include "shape/operators.hpp"
#include "shape/words.hpp"

namespace medley::cli {

struct ShapeOptions {
  std::string model, as, gpu;
  int tp = 1, pp = 1, dp = 1, zero = 0;
  plan::Count micro_batch = 1, global_batch = 0, seq = 0;
  bool sp = false, compiled = false;
  std::string mode = "train", attention = "best", dtype = "bf16", recompute = "none", framework = "textbook";
  std::string json;

  /// Adds everything but --model and --gpu, which some subcommands take several of.
  void add_layout(CLI::App& command);
  void add_model(CLI::App& command);
  void add_gpu(CLI::App& command);

  /// The layout and mode asked for.
  shape::Workload unchecked_workload() const;
  /// The same, checked against `model` with its defaults filled in.
  shape::Workload workload(const plan::Model& model) const;
};

/// A model by name, from a file, or inline, as `medley plan` reads it.
plan::Model shape_model(const std::string& name_or_file, const std::string& as = {});

/// "5%", "5" and "0.05" alike as a fraction; throws medley::Error (invalid) naming `option` and the value.
double parse_share(const std::string& text, const std::string& option);

/// One line on how far the figures can be trusted.
std::string trust_line(const shape::GpuModel& gpu);

}  // namespace medley::cli
