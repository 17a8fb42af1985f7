#include "reconcile/expectation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <medley/error.hpp>

#include "base/v_collectives.hpp"
#include "plan/groups.hpp"

namespace medley::reconcile {
namespace {

/// Numbers an expected operation; the default root is the group's first rank, as in replay.
void put(Kind kind, const std::vector<int>& ranks, const std::string& group, const std::string& why, std::int64_t layer,
         Fields ignored, Catalog& catalog, Expectation::Step& out) {
  if (ranks.size() == 1) return;  // a single rank sends nothing
  kind.op = core::equal_counts_form(kind.op);
  if (kind.bytes % static_cast<std::int64_t>(size_of(kind.dtype)) != 0) kind.dtype = DType::u8;  // as replay does
  if (rooted(kind.op) && kind.root < 0 && !ranks.empty()) kind.root = ranks.front();
  kind.group = catalog.group(ranks, group);
  normalise(kind, ignored);
  const std::uint32_t number = catalog.kind(kind);
  catalog.note_reason(number, why);
  out.sequence.push_back({number, 1});
  out.layers.push_back(layer);
}

Expectation::Step planned_step(const Plan& plan, int rank, Catalog& catalog, Fields ignored) {
  const auto schedule = plan::make_schedule(plan.model, plan.layout, plan.framework, rank);
  std::map<std::string_view, std::vector<int>> groups;
  Expectation::Step out;
  schedule.walk([&](const plan::Entry& entry, const plan::Place& place) {
    if (entry.kind != plan::Kind::comm) return;
    auto& ranks = groups[entry.group];
    if (ranks.empty()) {
      for (const plan::Count member : plan::group_ranks(plan.layout, rank, entry.group))
        ranks.push_back(static_cast<int>(member));
    }
    Kind kind{entry.op,
              entry.dtype,
              reducible(entry.dtype, entry.reduce) ? entry.reduce : ReduceOp::max,
              phase_number(plan::name(entry.phase)),
              entry.token != 0 || entry.batch != 0,
              0,
              entry.peer,
              entry.bytes,
              {}};
    put(kind, ranks, std::string(entry.group), std::string(entry.why), place.layer, ignored, catalog, out);
  });
  return out;
}

}  // namespace

Sequence expected_step(const Plan& plan, int rank, Catalog& catalog, Fields ignored) {
  return planned_step(plan, rank, catalog, ignored).sequence;
}

Expectation::Expectation(Plan plan) : plan_(std::move(plan)), world_(static_cast<int>(plan_->layout.world())) {}

Expectation::Expectation(replay::WorldSchedule schedule, double scale, int world)
    : schedule_(std::move(schedule)), scale_(scale), world_(schedule_.world > 0 ? schedule_.world : world) {}

Sequence Expectation::of(int rank, Catalog& catalog, Fields ignored) const {
  return step_of(rank, catalog, ignored).sequence;
}

Expectation::Step Expectation::step_of(int rank, Catalog& catalog, Fields ignored) const {
  if (plan_) return planned_step(*plan_, rank, catalog, ignored);
  const replay::RankSchedule schedule = schedule_.of(rank, world_);
  Step out;
  for (const replay::Action& a : schedule.actions) {
    if (a.kind != replay::Kind::comm) continue;
    const trace::ScopeParts scope = trace::parts_of_scope(a.scope);
    Kind kind{a.op,
              a.dtype,
              reducible(a.dtype, a.reduce) ? a.reduce : ReduceOp::max,
              phase_number(scope.phase),
              a.token != 0 || a.batch != 0,
              0,
              a.peer,
              replay::scaled_bytes(a.bytes, a.dtype, scale_),
              {}};
    if (scope.phase.empty()) kind.unknown.add(Field::phase);
    put(kind, schedule.groups.at(a.group), a.group, a.why, a.layer, ignored, catalog, out);
  }
  return out;
}

}  // namespace medley::reconcile
