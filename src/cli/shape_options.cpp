#include "cli/shape_options.hpp"

#include <fmt/format.h>

#include <charconv>
#include <medley/error.hpp>

#include "cli/command.hpp"

namespace medley::cli {

void add_shape_model(CLI::App& command, shape::ShapeRequest& request) {
  command.add_option("--model", request.model,
                     "Name of the zoo, a config file, or inline: h=2560,a=32,layers=32,vocab=50257,seq=2048");
  add_as(command, request.as);
}

void add_shape_gpu(CLI::App& command, shape::ShapeRequest& request) {
  command.add_option("--gpu", request.gpu, "GPU name, such as h200-sxm");
}

void add_shape_layout(CLI::App& command, shape::ShapeRequest& request, std::string& json) {
  command.add_option("--tp", request.tp, "Tensor-parallel GPUs");
  command.add_option("--pp", request.pp, "Pipeline stages");
  command.add_option("--dp", request.dp, "Data-parallel replicas: they share what --zero splits");
  command.add_option("--zero", request.zero, "ZeRO stage 0 to 3");
  command.add_flag("--sp", request.sp, "Sequence parallelism on the tensor group");
  command.add_option("--micro-batch", request.micro_batch, "Sequences in one micro-batch");
  command.add_option("--global-batch", request.global_batch,
                     "Sequences in one step (default: one micro-batch, four per stage with --pp)");
  command.add_option("--seq", request.seq, "Sequence length (default: the model's); the cached tokens in decode");
  command.add_option("--mode", request.mode, "Mode: train, prefill or decode");
  command.add_option("--attention", request.attention, "Attention: best, flash or cudnn (fused), or unfused");
  command.add_option("--framework", request.framework,
                     "Framework whose layers run: textbook (PyTorch's kernels), megatron, ddp, …");
  command.add_flag("--compiled", request.compiled,
                   "Element-wise chains run as one kernel (torch.compile, Megatron), not one by one");
  command.add_option("--recompute", request.recompute, "Recomputation: none, selective or full");
  command.add_option("--dtype", request.dtype, "Operands of the products: bf16, fp16 or fp8");
  add_json(command, json, "what the table shows");
}

double parse_share(const std::string& text, const std::string& option) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  const bool percent = stop != end && *stop == '%' && stop + 1 == end;
  if (error != std::errc() || (stop != end && !percent) || !(value >= 0) || value > 100)
    throw Error(ErrorKind::invalid, fmt::format("{} {}: give a percentage such as 5%", option, text));
  return percent || value >= 1 ? value / 100 : value;
}

std::string trust_line(const shape::GpuModel& gpu) {
  return gpu.calibrated()
             ? fmt::format("{}: calibrated, {}", gpu.gpu().name, gpu.provenance())
             : fmt::format("{}: uncalibrated, from the datasheet: trust the order, not the size", gpu.gpu().name);
}

}  // namespace medley::cli
