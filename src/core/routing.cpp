#include "core/routing.hpp"

#include <algorithm>

#include "core/comm_state.hpp"

namespace medley::core {

std::int64_t tensor_bytes(const Call& call, int ranks) noexcept {
  const auto element = static_cast<std::int64_t>(size_of(call.dtype));
  switch (call.op) {
    case Op::gather: return call.in_count * ranks * element;
    case Op::scatter: return call.out_count * ranks * element;
    case Op::reduce: return call.in_count * element;   // only the root has an output
    default: return std::max(call.in_count, call.out_count) * element;
  }
}

Routing::Routing(const Rules& of_comm, const Rules& of_context, const std::vector<std::unique_ptr<LaneState>>& lanes) {
  for (const Memory memory : {Memory::host, Memory::cuda}) {
    for (int i = 0; i < op_count; ++i) {
      const auto op = static_cast<Op>(i);
      std::vector<Step>& steps = steps_[static_cast<std::size_t>(memory)][static_cast<std::size_t>(i)];
      const auto covered = [&] {
        return std::any_of(steps.begin(), steps.end(), [](const Step& s) { return s.from == 0 && s.to == INT64_MAX; });
      };
      const auto add = [&](LaneState& lane, const Rules::Rule* rule) {
        if (covered() || !lane.moves(op, memory)) return;
        Step step{0, INT64_MAX, {&lane, {}, RouteReason::fallback}};
        if (rule) step = {rule->from, rule->to, {&lane, rule->choice.algorithm, RouteReason::rule}};
        steps.push_back(step);
      };
      for (const Rules* rules : {&of_comm, &of_context}) {
        for (const Rules::Rule& rule : rules->list()) {
          if (!rule.fits(op, memory)) continue;
          for (const auto& lane : lanes) {
            if (lane->name == rule.choice.backend) add(*lane, &rule);
          }
        }
      }
      for (const auto& lane : lanes) add(*lane, nullptr);   // in order of preference; the first closes the list
    }
  }
}

}  // namespace medley::core
