#include "plan/request.hpp"

#include <fmt/format.h>

#include <medley/error.hpp>

#include "model/read_layout.hpp"
#include "model/read_model.hpp"

namespace medley::plan {

Model model_of(const StepRequest& request) {
  if (request.model.empty())
    throw Error(ErrorKind::invalid, "--model is required: a known model, a file or h=…,a=…,layers=…");
  return read_model(request.model, request.as);
}

Layout layout_of(const StepRequest& request) {
  Layout layout = read_layout(request.layout);
  const auto set = [&](const char* key, Count value) {
    if (value != 0) set_layout_key(layout, key, std::to_string(value), fmt::format("--{}", key));
  };
  set("micro_batch", request.micro_batch);
  set("global_batch", request.global_batch);
  set("seq", request.seq);
  if (!request.dtype.empty()) set_layout_key(layout, "dtype", request.dtype, "--dtype");
  return layout;
}

Framework framework_of(const StepRequest& request) {
  if (const auto framework = parse_framework(request.framework)) return *framework;
  throw Error(ErrorKind::invalid, fmt::format("--framework '{}' is not known; it must be textbook, megatron, "
                                              "deepspeed, neox, ddp, fsdp1, fsdp2 or "
                                              "nanotron",
                                              request.framework));
}

}  // namespace medley::plan
