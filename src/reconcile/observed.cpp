#include "reconcile/observed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <medley/error.hpp>

#include "base/v_collectives.hpp"

namespace medley::reconcile {
namespace {

/// The operations of a step, in order.
Sequence read_step(const trace::Trace& trace, const trace::RankTrace& rank, trace::Step step, ObservedKinds& kinds,
                   ObservedRank& out) {
  Sequence sequence;
  trace::Event event;
  for (std::size_t i = step.begin; i < step.end; ++i) {
    if (!rank.events->read(i, event) || trace.names[event.scope] == trace::step_scope) continue;
    if (event.state != trace::State::complete) ++out.unfinished;
    if (event.unknown.has(Field::order) || event.count > 1) out.ordered = false;
    if (kinds.counts(event)) sequence.push_back({kinds.number_of(event), event.count});
  }
  return sequence;
}

void count_outside(const trace::RankTrace& rank, const trace::Trace& trace, const trace::Steps& steps,
                   ObservedRank& out) {
  if (steps.steps.empty()) return;
  trace::Event event;
  auto step = steps.steps.begin();
  for (std::size_t i = 0; i < rank.events->size(); ++i) {
    while (step != steps.steps.end() && i >= step->end) ++step;
    if (!rank.events->read(i, event)) continue;
    const bool border = trace.names[event.scope] == trace::step_scope;
    if (border ? event.op == Op::barrier : step != steps.steps.end() && i >= step->begin) continue;
    out.outside += event.count;
    out.outside_bytes += event.bytes * event.count;
  }
}

ObservedRank read_rank(const trace::Trace& trace, const trace::RankTrace& rank, const Selection& selection,
                       ObservedKinds& kinds) {
  const SelectedSteps selected = select_steps(trace, rank, selection);
  ObservedRank out;
  out.rank = rank.rank;
  out.steps = selected.count();
  out.found_by = selected.all.found_by;
  out.remarks = rank.remarks;
  out.repeats = selected.repeats;
  for (const auto& [number, step] : selected.steps) {
    Sequence sequence = read_step(trace, rank, step, kinds, out);
    const auto same = std::find_if(out.variants.begin(), out.variants.end(),
                                   [&](const Variant& v) { return v.sequence == sequence; });
    if (same == out.variants.end()) out.variants.push_back({std::move(sequence), {number}});
    else same->steps.push_back(number);
  }
  std::stable_sort(out.variants.begin(), out.variants.end(),
                   [](const Variant& a, const Variant& b) { return a.steps.size() > b.steps.size(); });
  if (selection.step == 0 && selection.skip == 0) count_outside(rank, trace, selected.all, out);
  return out;
}

}  // namespace

ObservedKinds::ObservedKinds(const trace::Trace& trace, Fields ignored, Catalog& catalog)
    : trace_(trace), ignored_(ignored), catalog_(catalog) {
  for (const trace::Group& group : trace.groups) groups_.push_back(catalog.group(group.ranks, group.name));
}

bool ObservedKinds::counts(const trace::Event& event) const {
  return trace_.groups[event.group].size != 1 && trace_.names[event.scope] != trace::step_scope;
}

std::uint32_t ObservedKinds::number_of(const trace::Event& event) {
  const trace::ScopeParts scope = trace::parts_of_scope(trace_.names[event.scope]);
  Kind kind{core::equal_counts_form(event.op),
            event.dtype,
            event.reduce,
            phase_number(scope.phase),
            event.async,
            groups_[event.group],
            event.peer,
            event.bytes,
            event.unknown};
  if (trace_.groups[event.group].ranks.empty()) kind.unknown.add(Field::group);
  normalise(kind, ignored_);
  const std::uint32_t number = catalog_.kind(kind);
  catalog_.note_place(number, std::string(trace_.names[event.scope]));
  return number;
}

SelectedSteps select_steps(const trace::Trace& trace, const trace::RankTrace& rank, const Selection& selection) {
  const bool sums = [&] {
    trace::Event event;
    for (std::size_t i = 0; i < rank.events->size(); ++i)
      if (rank.events->read(i, event) && event.count > 1) return true;
    return false;
  }();
  SelectedSteps out;
  out.all = trace::find_steps(trace, rank, sums ? 1 : selection.steps);
  if (sums && selection.steps > 1) out.repeats = static_cast<std::int64_t>(selection.steps);
  const std::size_t count = out.count();
  if (selection.step > count || selection.skip >= std::max<std::size_t>(1, count)) {
    throw Error(
        ErrorKind::invalid,
        fmt::format("{} {}: rank {} has {} step{}", selection.step > 0 ? "--step" : "--skip",
                    selection.step > 0 ? selection.step : selection.skip, rank.rank, count, count == 1 ? "" : "s"));
  }
  for (std::size_t s = 0; s < out.all.steps.size(); ++s) {
    const bool wanted = selection.step > 0 ? s + 1 == selection.step : s >= selection.skip;
    if (wanted) out.steps.emplace_back(s + 1, out.all.steps[s]);
  }
  return out;
}

std::vector<ObservedRank> observed_ranks(const trace::Trace& trace, const Selection& selection, Fields ignored,
                                         Catalog& catalog) {
  ObservedKinds kinds(trace, ignored, catalog);
  if (selection.rank >= 0) return {read_rank(trace, trace.rank(selection.rank), selection, kinds)};
  std::vector<ObservedRank> out;
  for (const trace::RankTrace& rank : trace.ranks) out.push_back(read_rank(trace, rank, selection, kinds));
  return out;
}

}  // namespace medley::reconcile
