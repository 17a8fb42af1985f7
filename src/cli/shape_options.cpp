#include "cli/shape_options.hpp"

#include <fmt/format.h>

#include <charconv>
#include <medley/error.hpp>

#include "cli/command.hpp"
#include "model/read_layout.hpp"
#include "model/read_model.hpp"
#include "shape/step.hpp"

namespace medley::cli {
namespace {

template <typename T>
T choose(const std::string& option, const std::string& text,
         std::initializer_list<std::pair<const char*, T>> choices) {
  std::string names;
  for (const auto& [name, value] : choices) {
    if (text == name) return value;
    names += (names.empty() ? "" : ", ") + std::string(name);
  }
  throw Error(ErrorKind::invalid, fmt::format("{} {}: choose one of {}", option, text, names));
}

}  // namespace

void ShapeOptions::add_model(CLI::App& command) {
  command.add_option("--model", model,
                     "Name of the zoo, a config file, or inline: h=2560,a=32,layers=32,vocab=50257,seq=2048");
  add_as(command, as);
}

void ShapeOptions::add_gpu(CLI::App& command) {
  command.add_option("--gpu", gpu, "GPU name, such as h200-sxm");
}

void ShapeOptions::add_layout(CLI::App& command) {
  command.add_option("--tp", tp, "Tensor-parallel GPUs");
  command.add_option("--pp", pp, "Pipeline stages");
  command.add_option("--dp", dp, "Data-parallel replicas: they share what --zero splits");
  command.add_option("--zero", zero, "ZeRO stage 0 to 3");
  command.add_flag("--sp", sp, "Sequence parallelism on the tensor group");
  command.add_option("--micro-batch", micro_batch, "Sequences in one micro-batch");
  command.add_option("--global-batch", global_batch,
                     "Sequences in one step (default: one micro-batch, four per stage with --pp)");
  command.add_option("--seq", seq, "Sequence length (default: the model's); the cached tokens in decode");
  command.add_option("--mode", mode, "train, prefill or decode");
  command.add_option("--attention", attention, "best, flash or cudnn (fused), or unfused");
  command.add_option("--framework", framework,
                     "Whose layers run: textbook (PyTorch's kernels), megatron, ddp, …");
  command.add_flag("--compiled", compiled,
                   "Element-wise chains run as one kernel (torch.compile, Megatron), not one by one");
  command.add_option("--recompute", recompute, "none, selective or full");
  command.add_option("--dtype", dtype, "Operands of the products: bf16, fp16 or fp8");
  command.add_option("--json", json, "Write what the table shows as JSON ('-' for stdout)");
}

shape::Workload ShapeOptions::unchecked_workload() const {
  shape::Workload work;
  work.layout.mode = shape::parse_mode(mode);
  work.layout.flags.compile = compiled;
  const shape::GemmType type = shape::parse_gemm_type(dtype);
  plan::Layout& layout = work.layout;
  layout.tp = tp;
  layout.pp = pp;
  layout.dp = dp;
  layout.zero = zero;
  layout.sp = sp;
  layout.micro_batch = micro_batch;
  layout.global_batch = global_batch;
  layout.seq = seq;
  layout.dtype = type == shape::GemmType::fp16 ? DType::f16 : DType::bf16;
  layout.flags.fp8 = type == shape::GemmType::fp8;
  plan::set_layout_key(layout, "attention", attention, "--attention");
  const auto named = plan::parse_framework(framework);
  if (!named) throw Error(ErrorKind::invalid, fmt::format("--framework '{}' is not known", framework));
  work.framework = *named;
  layout.recompute = choose<plan::Recompute>("--recompute", recompute,
                                             {{"none", plan::Recompute::none},
                                              {"selective", plan::Recompute::selective},
                                              {"full", plan::Recompute::full}});
  return work;
}

shape::Workload ShapeOptions::workload(const plan::Model& of) const {
  shape::Workload work = unchecked_workload();
  shape::check(of, work);
  return work;
}

plan::Model shape_model(const std::string& name_or_file, const std::string& as) {
  if (name_or_file.empty())
    throw Error(ErrorKind::invalid, "--model is missing: give a name such as llama-2-7b, or a config file");
  return plan::read_model(name_or_file, as);
}

double parse_share(const std::string& text, const std::string& option) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  const bool percent = stop != end && *stop == '%' && stop + 1 == end;
  if (error != std::errc() || (stop != end && !percent) || !(value >= 0) || value > (percent ? 100 : 100))
    throw Error(ErrorKind::invalid, fmt::format("{} {}: give a percentage such as 5%", option, text));
  return percent || value >= 1 ? value / 100 : value;
}

std::string trust_line(const shape::GpuModel& gpu) {
  return gpu.calibrated() ? fmt::format("{}: calibrated, {}", gpu.gpu().name, gpu.provenance())
                          : fmt::format("{}: uncalibrated, from the datasheet: trust the order, not the size",
                                        gpu.gpu().name);
}

}  // namespace medley::cli
