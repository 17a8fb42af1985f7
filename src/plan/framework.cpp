#include "plan/framework.hpp"

#include <fmt/format.h>

#include <array>
#include <medley/error.hpp>

#include "plan/frameworks.hpp"
#include "plan/volume.hpp"

namespace medley::plan {
namespace {

struct Maker {
  std::string_view name;
  Schedule (*make)(const Model&, const Layout&, Count);
};
constexpr std::array<Maker, framework_count> makers = {{{"textbook", textbook_schedule},
                                                        {"megatron", megatron_schedule},
                                                        {"deepspeed", deepspeed_schedule},
                                                        {"neox", neox_schedule},
                                                        {"ddp", ddp_schedule},
                                                        {"fsdp2", fsdp2_schedule}}};

}  // namespace

std::string_view name(Framework framework) noexcept {
  return makers[static_cast<std::size_t>(framework)].name;
}

std::optional<Framework> parse_framework(std::string_view text) noexcept {
  for (std::size_t i = 0; i < makers.size(); ++i) {
    if (makers[i].name == text) return static_cast<Framework>(i);
  }
  return std::nullopt;
}

void refuse(Framework framework, const std::string& sentence) {
  throw Error(ErrorKind::invalid, fmt::format("{}: {}", name(framework), sentence));
}

Layout as_run_by(const Layout& layout, Framework framework) {
  Layout out = layout;
  if (framework == Framework::ddp || framework == Framework::fsdp2) out.flags.flash_attention = true;
  return out;
}

Schedule make_schedule(const Model& model, const Layout& layout, Framework framework, Count rank) {
  return makers[static_cast<std::size_t>(framework)].make(model, as_run_by(layout, framework), rank);
}

Count busiest_rank(const Model& model, const Layout& layout, Framework framework) {
  if (layout.pp == 1) return 0;
  Count best = 0;
  double most = -1;
  // Stages between the first two and the last two do the same as their neighbours, unless layers divide
  // unevenly; the first stages hold the extra layers then.
  for (int stage = 0; stage < layout.pp; ++stage) {
    if (stage > 1 && stage < layout.pp - 2 &&
        model.layers % (Count{layout.pp} * layout.virtual_stages) == 0 && !model.moe())
      continue;
    Coordinates at;
    at.pp = stage;
    const Count rank = rank_of(layout, at);
    const double wire = total_wire_bytes(make_schedule(model, layout, framework, rank));
    if (wire > most * (1 + 1e-12)) {
      most = wire;
      best = rank;
    }
  }
  return best;
}

std::vector<Bucket> fill_buckets(const std::vector<LocalTensor>& tensors, bool expert, Count first_limit,
                                 Count limit) {
  std::vector<Bucket> buckets;
  Bucket open;
  for (auto t = tensors.rbegin(); t != tensors.rend(); ++t) {
    if (t->expert() != expert) continue;
    open.elements = sum(open.elements, t->elements, "gradient bucket");
    open.last_layer = t->layer;
    if (open.elements < (buckets.empty() ? first_limit : limit)) continue;
    buckets.push_back(open);
    open = {};
  }
  if (open.elements > 0) buckets.push_back(open);
  return buckets;
}

}  // namespace medley::plan
