// Since when the program or its stream waited for an operation, in the operation's record.
#include <algorithm>

#include "engine/engine.hpp"

namespace medley::core {
namespace {

/// Converts moments to ticks, all by one reading of both clocks.
class TicksAt {
 public:
  std::uint64_t operator()(Deadline moment) const {
    const std::chrono::duration<double, std::nano> ago = now_ - moment;
    return ticks_ - static_cast<std::uint64_t>(static_cast<std::int64_t>(ago.count() / ns_per_tick()));
  }

 private:
  Deadline now_ = std::chrono::steady_clock::now();
  std::uint64_t ticks_ = ticks();
};

}  // namespace

/// Visits the records, where they are still kept, of an operation and of the members of a batch.
template <typename Visit>
void Engine::visit_records(const Operation& operation, const Visit& visit) noexcept {
  const auto visit_one = [&](const Operation& one) {
    if (Record* const record = one.record ? recorder_->find(one.record) : nullptr) visit(one, *record);
  };
  visit_one(operation);
  for (const Operation* member : operation.batch) visit_one(*member);
}

void Engine::note_wait(const Operation& operation) noexcept {
  if (operation.collected) operation.comm->auto_fuse->asked = true;
  visit_records(operation, [](const Operation& one, Record& record) {
    if (record.waited != 0 || one.complete()) return;
    record.waited = ticks();
    record.flags = static_cast<std::uint8_t>(record.flags & ~record_wait_unknown);
  });
}

void Engine::note_awaited_elsewhere(Operation& operation) noexcept {
  if (!fork_guard_.here()) return;  // the lock may be held by a thread of the parent
  const std::lock_guard lock(mutex_);
  if (operation.complete() || operation.awaited_elsewhere) return;
  operation.awaited_elsewhere = true;
  note_batch_awaited_elsewhere(operation);
}

/// A tensor gets its batch when it is fused, and loses it when that is complete: called at the beginning and at the end.
void Engine::note_batch_awaited_elsewhere(Operation& operation) noexcept {
  auto& known = operation.awaited_records;
  visit_records(operation, [&](const Operation& one, Record& record) {
    if (std::find(known.begin(), known.end(), one.record) != known.end()) return;
    known.push_back(one.record);
    if (record.waited == 0) record.flags |= record_wait_unknown;
  });
}

void Engine::note_awaited_since(const Operation& operation, Deadline moment) noexcept {
  if (!fork_guard_.here()) return;
  const std::lock_guard lock(mutex_);
  if (!operation.complete()) return;
  const std::uint64_t since = TicksAt()(moment);
  for (const std::uint64_t number : operation.awaited_records) {
    Record* const record = recorder_->find(number);
    if (!record || !(record->flags & record_wait_unknown)) continue;
    if (since < record->completed) record->waited = since;
    record->flags = static_cast<std::uint8_t>(record->flags & ~record_wait_unknown);
  }
}

void Engine::note_device_times(std::uint64_t number, const DeviceTimes& times) noexcept {
  Record* record = number && times.ended != Deadline{} ? recorder_->find(number) : nullptr;
  if (!record) return;
  const auto moment = [at = TicksAt()](Deadline time) { return time == Deadline{} ? 0 : at(time); };
  record->gpu_started = moment(times.begun);
  record->gpu_waited = moment(times.awaited);
  record->gpu_completed = moment(times.ended);
}

}  // namespace medley::core
