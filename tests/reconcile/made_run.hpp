// Synthetic runs in memory: what every rank of a planned job would issue, step by step, as a trace. Tests corrupt them
// before they are reconciled.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "model/read_layout.hpp"
#include "plan/groups.hpp"
#include "reconcile/reconcile.hpp"

namespace medley::reconcile::test {

struct MadeOperation {
  trace::Event event;
  std::string group;
  std::vector<int> ranks;
  std::string scope;
};
using MadeStep = std::vector<MadeOperation>;
struct MadeRank {
  int rank = 0;
  std::vector<MadeStep> steps;
};
struct MadeRun {
  int world = 0;
  std::vector<MadeRank> ranks;
};

inline Plan plan_of(const std::string& layout, plan::Framework framework,
                    const std::string& model = "h=128,a=4,layers=4,vocab=1024,seq=64") {
  Plan out{plan::read_model(model), plan::read_layout(layout), framework};
  plan::check(out.layout, out.model);
  return out;
}

/// What one rank issues, as an engine would record it.
inline MadeStep made_step(const Plan& plan, int rank) {
  MadeStep out;
  plan::make_schedule(plan.model, plan.layout, plan.framework, rank)
      .walk([&](const plan::Entry& entry, const plan::Place&) {
        if (entry.kind != plan::Kind::comm) return;
        MadeOperation op;
        for (const plan::Count member : plan::group_ranks(plan.layout, rank, entry.group))
          op.ranks.push_back(static_cast<int>(member));
        if (op.ranks.size() < 2) return;
        op.group = entry.group;
        op.scope = std::string(plan::name(entry.phase)) + "/" + entry.module;
        op.event.op = entry.op;
        op.event.dtype = entry.dtype;
        op.event.reduce = entry.reduce;
        op.event.bytes = entry.bytes;
        op.event.async = entry.token != 0 || entry.batch != 0;
        op.event.peer = entry.peer >= 0 ? entry.peer : rooted(entry.op) ? op.ranks.front() : -1;
        op.event.matched = is_collective(entry.op);
        out.push_back(std::move(op));
      });
  return out;
}

inline MadeRun made_run(const Plan& plan, std::size_t steps) {
  MadeRun run{static_cast<int>(plan.layout.world()), {}};
  for (int rank = 0; rank < run.world; ++rank)
    run.ranks.push_back({rank, std::vector<MadeStep>(steps, made_step(plan, rank))});
  return run;
}

inline trace::Trace trace_of(const MadeRun& run) {
  trace::Trace out;
  out.source = "made";
  out.world = run.world;
  trace::Group world{"world", {}, run.world};
  for (int rank = 0; rank < run.world; ++rank) world.ranks.push_back(rank);
  for (const MadeRank& made : run.ranks) {
    auto list = std::make_shared<trace::EventList>();
    double now = 0;
    std::uint64_t sequence = 0;
    for (const MadeStep& step : made.steps) {
      trace::Event border;
      border.op = Op::barrier;
      border.scope = out.name(trace::step_scope);
      border.group = out.group(world);
      border.sequence = ++sequence;
      list->events.push_back(border);
      for (const MadeOperation& op : step) {
        trace::Event event = op.event;
        event.group = out.group({op.group, op.ranks, static_cast<int>(op.ranks.size())});
        event.scope = out.name(op.scope);
        event.sequence = ++sequence;
        event.issued = event.started = now += 1000;
        event.completed = now + 500;
        list->events.push_back(event);
      }
    }
    trace::RankTrace rank;
    rank.rank = made.rank;
    rank.issued = static_cast<std::int64_t>(list->events.size());
    rank.events = std::move(list);
    out.ranks.push_back(std::move(rank));
  }
  return out;
}

inline Report held_against(const Plan& planned, const MadeRun& run, const Options& options = {}) {
  return reconcile(trace_of(run), Expectation(planned), options);
}

/// Every difference with its cause, for messages of failed tests.
inline std::string text_of(const Report& report) {
  std::string out;
  for (const Finding& finding : report.findings) out += finding.kind + ": " + finding.sentence + "\n";
  for (const RankResult& rank : report.ranks) {
    for (const StepsResult& steps : rank.results) {
      for (const Line& line : steps.lines) {
        if (!line.differs()) continue;
        out += std::to_string(rank.rank) + " " + std::string(name(line.verdict)) + " " +
               (line.expected_count > 0 ? report.catalog.text(line.expected) : "-") + " × " +
               std::to_string(line.expected_count) + " | " +
               (line.observed_count > 0 ? report.catalog.text(line.observed) : "-") + " × " +
               std::to_string(line.observed_count) + " | " + line.detail + " | " + line.cause + "\n";
        if (out.size() > 4000) return out + "…";
      }
    }
  }
  return out;
}

}  // namespace medley::reconcile::test
