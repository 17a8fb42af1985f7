// The options that `medley shape` and its subcommands share: which model, which GPU, how it is laid out.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "shape/request.hpp"

namespace medley::cli {

void add_shape_model(CLI::App& command, shape::ShapeRequest& request);
void add_shape_gpu(CLI::App& command, shape::ShapeRequest& request);
/// Everything but --model and --gpu, which some subcommands take several of.
void add_shape_layout(CLI::App& command, shape::ShapeRequest& request, std::string& json);

/// "5%", "5" and "0.05" alike as a fraction; throws medley::Error (invalid) naming `option` and the value.
double parse_share(const std::string& text, const std::string& option);

/// One line on how reliable the figures are.
std::string trust_line(const shape::GpuModel& gpu);

}  // namespace medley::cli
