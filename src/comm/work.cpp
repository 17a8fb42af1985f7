#include <medley/work.hpp>

#include "engine/engine.hpp"

namespace medley {

Work::Work(const Work& other) noexcept : operation_(other.operation_), source_(other.source_) {
  if (operation_) operation_->retain();
}

void Work::drop() noexcept { operation_->release(); }

void Work::wait() {
  if (operation_ && !operation_->ended_well())
    operation_->comm->engine->wait_in_stream(*operation_, operation_->deadline);
}

void Work::wait(std::chrono::nanoseconds deadline) {
  if (operation_) operation_->comm->engine->wait_in_stream(*operation_, deadline_after(deadline));
}

bool Work::wait_in(void* stream, std::chrono::nanoseconds at_most) {
  return !operation_ || operation_->comm->engine->wait_in_stream_until(*operation_, stream, deadline_after(at_most));
}

void Work::wait_host() {
  if (operation_) operation_->comm->engine->wait(*operation_, operation_->deadline);
}

void Work::wait_host(std::chrono::nanoseconds deadline) {
  if (operation_) operation_->comm->engine->wait(*operation_, deadline_after(deadline));
}

bool Work::wait_for(std::chrono::nanoseconds at_most) {
  return !operation_ || operation_->comm->engine->wait_until(*operation_, deadline_after(at_most));
}

void Work::awaited_elsewhere() noexcept {
  if (operation_) operation_->comm->engine->note_awaited_elsewhere(*operation_);
}

void Work::awaited_since(std::chrono::steady_clock::time_point moment) noexcept {
  if (operation_) operation_->comm->engine->note_awaited_since(*operation_, moment);
}

void Work::on_complete(std::function<void()> callback) {
  if (!operation_ || !operation_->comm->engine->call_back(*operation_, callback)) callback();
}

bool Work::test() {
  if (!operation_) return true;
  if (!operation_->complete()) operation_->comm->engine->progress();
  if (!operation_->complete()) return false;
  if (operation_->error) throw *operation_->error;
  return true;
}

bool Work::complete() const noexcept { return !operation_ || operation_->complete(); }

const Error* Work::error() const noexcept {
  if (!operation_ || !operation_->complete() || !operation_->error) return nullptr;
  return &*operation_->error;
}

int Work::source() const noexcept {
  // relaxed: as Operation::source says
  const int known = operation_ ? operation_->source.load(std::memory_order_relaxed) : -1;
  return known >= 0 ? known : source_;
}

}  // namespace medley
