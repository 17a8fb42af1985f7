// What the engine records about every operation.
#include <fmt/format.h>

#include <cstdio>
#include <medley/sdk/memory_barrier.hpp>
#include <nlohmann/json.hpp>

#include "engine/engine.hpp"

namespace medley::core {
namespace {

constexpr std::size_t most_decisions = 256;  // kept for the program; records keep the first ones

std::string sizes_text(const RouteDecision& decision) {
  return decision.to_bytes == INT64_MAX ? fmt::format("{} bytes and more", decision.from_bytes)
                                        : fmt::format("{} to {} bytes", decision.from_bytes, decision.to_bytes);
}

}  // namespace

std::uint32_t Engine::note_comm(const std::string& name, const std::vector<int>& world_ranks) {
  const std::lock_guard lock(mutex_);
  if (!recorder_) return 0;
  return recorder_->note(NoteKind::comm, nlohmann::json{{"name", name}, {"ranks", world_ranks}}.dump());
}

Record* Engine::record(const CommState& comm, const Call& call, const Route& route, const Options& options,
                       std::uint64_t issued, std::uint64_t started, std::uint64_t completed) {
  if (!recorder_) return nullptr;
  Record& record = recorder_->next();
  record.sequence = is_collective(call.op) ? comm.collectives : comm.messages;
  record.issued = issued;
  record.started = started;
  record.completed = completed;
  record.waited = 0;
  record.in_count = call.in_count;
  record.out_count = call.out_count;
  record.part_of = 0;
  record.gpu_started = record.gpu_completed = record.gpu_waited = 0;
  record.comm = comm.note;
  record.scope = recorder_->scope();
  record.root = call.root;
  record.tag = call.tag;
  record.op = static_cast<std::uint8_t>(call.op);
  record.dtype = static_cast<std::uint8_t>(call.dtype);
  record.reduce = static_cast<std::uint8_t>(call.reduce);
  record.memory = static_cast<std::uint8_t>(call.memory);
  record.reason = route.reason;
  record.backend = route.lane->note;
  record.algorithm = call.algorithm.empty() ? 0 : recorder_->algorithm(call.algorithm);
  record.flags = static_cast<std::uint8_t>((options.async ? record_async : 0) | (completed ? record_inline : 0));
  write_barrier();  // for readers of a running job, and of a killed one
  record.state = completed ? RecordState::complete : started ? RecordState::started : RecordState::issued;
  return &record;
}

/// For an operation whose route was open; an empty route marks it as open.
void Engine::note_route(const Operation& operation, const Route& route) noexcept {
  Record* record = operation.record ? recorder_->find(operation.record) : nullptr;
  if (!record) return;
  record->reason = route.reason;
  record->backend = route.lane ? route.lane->note : 0;
  record->algorithm = operation.call.algorithm.empty() ? 0 : recorder_->algorithm(operation.call.algorithm);
}

/// For the program, in the record, and, if a route changed, on stderr by one rank.
void Engine::note_decisions(CommState& comm) {
  for (OnlineDecision& news : comm.online->take_decisions()) {
    const bool changed = news.decision.result != route::TrialOutcome::Result::kept;
    decisions_.push_back({comm.name, news.op, news.from_bytes, news.to_bytes, news.sequence, changed,
                          std::move(news.from), std::move(news.to), std::move(news.reason)});
    if (decisions_.size() > most_decisions) decisions_.pop_front();
    const RouteDecision& decision = decisions_.back();
    if (recorder_ && recorder_->has_room_for_notes()) {
      const nlohmann::json note{{"comm", comm.name},
                                {"op", name(news.op)},
                                {"dtype", route::name(news.dtype)},
                                {"from_bytes", decision.from_bytes},
                                {"to_bytes", decision.to_bytes},
                                {"sequence", decision.sequence},
                                {"changed", changed},
                                {"from", decision.from},
                                {"to", decision.to},
                                {"reason", decision.reason}};
      recorder_->note(NoteKind::decision, note.dump());
    }
    if (!changed || comm.rank != 0) continue;
    fmt::print(stderr, "medley: comm {}: from collective {} on, {} of {} takes {} instead of {}: {}\n", comm.name,
               decision.sequence, name(news.op), sizes_text(decision), decision.to, decision.from, decision.reason);
  }
}

std::vector<RouteDecision> Engine::route_decisions() {
  refuse_forked_child();
  const std::lock_guard lock(mutex_);
  return {decisions_.begin(), decisions_.end()};
}

void Engine::note_start(std::uint64_t number, std::uint64_t moment) noexcept {
  Record* record = number ? recorder_->find(number) : nullptr;
  if (!record) return;
  record->started = moment;
  write_barrier();
  record->state = RecordState::started;
}

void Engine::note_end(std::uint64_t number, bool failed) noexcept {
  note_end(number ? recorder_->find(number) : nullptr, failed);
}

void Engine::note_end(Record* record, bool failed) noexcept {
  if (!record) return;
  record->completed = ticks();
  if (record->started == 0 && !failed) {
    record->started = record->issued;  // it ran inside the call
    record->flags |= record_inline;
  }
  write_barrier();
  record->state = failed ? RecordState::failed : RecordState::complete;
  if (failed) recorder_->keep();
}

}  // namespace medley::core
