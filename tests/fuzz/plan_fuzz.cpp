// Fuzzes every reader of the plan module with one input: each must return or reject it, and never crash or
// hang.

#include "fuzz/survives.hpp"
#include "model/read_layout.hpp"
#include "plan/aicb.hpp"
#include "plan/volume.hpp"

namespace {

void plan_it(const medley::plan::Model& model, medley::plan::Layout layout) {
  using namespace medley::plan;
  if (model.layers > 4096 || layout.pp > 64) return;  // large but legal plans only cost time
  check(layout, model);
  if (layout.micro_batches() > 256) return;
  for (int f = 0; f < framework_count; ++f) {
    survives([&] { rows_of(make_schedule(model, layout, static_cast<Framework>(f), 0)); });
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace medley::plan;
  if (size < 1) return 0;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const Layout small = read_layout("dp=2,tp=2,pp=2");
  switch (data[0] % 8) {
    case 0: survives([&] { plan_it(model_from_huggingface(parse_json(text, "f"), "f"), small); }); break;
    case 1: survives([&] { plan_it(model_from_neox(text, "f"), small); }); break;
    case 2: survives([&] { plan_it(model_from_megatron(parse_arguments(text), "f"), small); }); break;
    case 3: survives([&] { plan_it(model_from_inline(text), small); }); break;
    case 4:
      survives([&] {
        Layout l;
        layout_from_deepspeed(l, parse_json(text, "f"), "f");
        plan_it(read_model("pythia-70m"), l);
      });
      break;
    case 5:
      survives([&] {
        Layout l;
        layout_from_neox(l, text, "f");
        plan_it(read_model("pythia-70m"), l);
      });
      break;
    case 6: survives([&] { plan_it(read_model("pythia-70m"), read_layout(text)); }); break;
    default: survives([&] { read_aicb(text, "f", 0); });
  }
  return 0;
}
