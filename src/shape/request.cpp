#include "shape/request.hpp"

#include <fmt/format.h>

#include <medley/error.hpp>

#include "model/read_layout.hpp"
#include "model/read_model.hpp"
#include "shape/step.hpp"

namespace medley::shape {
namespace {

plan::Recompute parse_recompute(const std::string& text) {
  if (text == "none") return plan::Recompute::none;
  if (text == "selective") return plan::Recompute::selective;
  if (text == "full") return plan::Recompute::full;
  throw Error(ErrorKind::invalid, fmt::format("--recompute {}: choose one of none, selective, full", text));
}

}  // namespace

Model shape_model(const std::string& name_or_file, const std::string& as) {
  if (name_or_file.empty())
    throw Error(ErrorKind::invalid, "--model is missing: give a name such as llama-2-7b, or a config file");
  return model::read_model(name_or_file, as);
}

Workload unchecked_workload(const ShapeRequest& request) {
  Workload work;
  Layout& layout = work.layout;
  layout.mode = parse_mode(request.mode);
  layout.flags.compile = request.compiled;
  const GemmType type = parse_gemm_type(request.dtype);
  layout.tp = request.tp;
  layout.pp = request.pp;
  layout.dp = request.dp;
  layout.zero = request.zero;
  layout.sp = request.sp;
  layout.micro_batch = request.micro_batch;
  layout.global_batch = request.global_batch;
  layout.seq = request.seq;
  layout.dtype = type == GemmType::fp16 ? DType::f16 : DType::bf16;
  layout.flags.fp8 = type == GemmType::fp8;
  model::set_layout_key(layout, "attention", request.attention, "--attention");
  const auto framework = plan::parse_framework(request.framework);
  if (!framework) throw Error(ErrorKind::invalid, fmt::format("--framework '{}' is not known", request.framework));
  work.framework = *framework;
  layout.recompute = parse_recompute(request.recompute);
  return work;
}

Workload workload_of(const ShapeRequest& request, const Model& model) {
  Workload work = unchecked_workload(request);
  check(model, work);
  return work;
}

}  // namespace medley::shape
