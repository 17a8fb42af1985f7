#include "cost/search_axes.hpp"

#include <algorithm>

#include "model/text.hpp"

namespace medley::cost {
namespace {

using Values = std::vector<std::string>;

/// Whether a layout's text has this key: its value may be the default, which the layout itself does not show.
bool names(const std::string& spec, const std::string& key) {
  return std::ranges::any_of(model::split(spec, ','), [&](const std::string& item) {
    return model::plain_key(model::trimmed(item.substr(0, item.find('=')))) == key;
  });
}

template <typename Allowed>
Values divisors(Count of, Count most, const Allowed& allowed) {
  Values values;
  for (Count v = 1; v <= std::min(of, most); ++v)
    if (of % v == 0 && allowed(v)) values.push_back(std::to_string(v));
  return values;
}

Values powers_of_two(Count most) {
  Values values;
  for (Count v = 1; v <= most; v *= 2) values.push_back(std::to_string(v));
  return values;
}

Values zero_stages(Framework framework) {
  switch (framework) {
    case Framework::textbook:
    case Framework::deepspeed: return {"0", "1", "2", "3"};
    case Framework::megatron:
    case Framework::neox:
    case Framework::nanotron: return {"0", "1"};
    case Framework::ddp: return {"0"};
    case Framework::fsdp1:
    case Framework::fsdp2: return {"3", "2"};
  }
  return {};
}

}  // namespace

std::vector<SweepAxis> search_axes(const PlanRequest& request, const PlanSetting& setting, const Model& m,
                                   const Layout& base) {
  std::vector<SweepAxis> axes;
  const Layout plain;
  const auto vary = [&](const char* key, auto Layout::*field, Values values) {
    if (values.size() > 1 && base.*field == plain.*field && !names(request.layout, key))
      axes.push_back({key, std::move(values)});
  };
  const auto any = [](Count) { return true; };
  const bool data_parallel_only = setting.framework == Framework::ddp || setting.framework == Framework::fsdp1;
  const bool interleaves = setting.framework == Framework::megatron || setting.framework == Framework::textbook;
  if (!data_parallel_only) {
    vary("tp", &Layout::tp,
         divisors(base.ranks, setting.machine->gpus_per_host, [&](Count v) { return m.heads % v == 0; }));
    vary("pp", &Layout::pp, divisors(base.ranks, m.layers, any));
    if (interleaves) vary("vp", &Layout::virtual_stages, divisors(m.layers, 12, any));
    if (m.moe()) vary("ep", &Layout::ep, divisors(base.ranks, m.experts, [&](Count v) { return m.experts % v == 0; }));
    vary("sp", &Layout::sp, {"off", "on"});
  }
  vary("zero", &Layout::zero, zero_stages(setting.framework));
  if (request.micro_batch == 0)
    vary("micro_batch", &Layout::micro_batch, powers_of_two(std::min<Count>(64, base.global_batch)));
  vary("recompute", &Layout::recompute,
       base.flags.flash_attention ? Values{"none", "full"} : Values{"none", "selective", "full"});
  return axes;
}

}  // namespace medley::cost
