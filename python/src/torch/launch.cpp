#include "launch.hpp"

#include <c10/core/StreamGuard.h>
#include <medley/error.hpp>

#include <algorithm>
#include <atomic>
#include <utility>

#include "cuda.hpp"
#include "torch_error.hpp"

namespace medley::torch {

std::shared_ptr<Launch> Launch::make(Held held, c10::Stream issued, c10::Stream side) {
  const bool ended = std::all_of(held.works.begin(), held.works.end(),
                                 [](const medley::Work& work) { return work.complete() && !work.error(); });
  auto launch = std::make_shared<Launch>(std::move(held), issued, side);
  if (ended) {
    launch->end_at_once();
    return launch;
  }
  if (launch->copies_) launch->order(side, std::chrono::nanoseconds(0));
  launch->when_complete([launch] { launch->settle(); });
  return launch;
}

/// Also for a captured operation, whose copies must be captured in its own stream, and for torch's
/// computation there.
void Launch::end_at_once() {
  if (held_.after) std::exchange(held_.after, nullptr)();
  held_.kept.clear();
  if (!copies_ && !held_.works.empty()) return;
  copies_ = true;
  copied_.emplace(issued_.device_type());
  copied_->record(issued_);
}

/// In the side stream, after the operations. Called under the lock.
void Launch::copy_back() {
  const auto after = std::exchange(held_.after, nullptr);
  if (!after) return;
  try {
    const c10::StreamGuard guard(side_);
    after();
    copied_.emplace(side_.device_type());
    copied_->record(side_);
    record_stream(held_.kept, side_);
  } catch (...) {
    copy_problem_ = std::current_exception();
  }
}

/// The operations are complete.
void Launch::settle() {
  std::vector<at::Tensor> dropped;  // without the lock: freeing a tensor may run the program's code
  const std::lock_guard lock(mutex_);
  const bool failed = std::any_of(held_.works.begin(), held_.works.end(),
                                  [](const medley::Work& work) { return work.error() != nullptr; });
  if (!failed) copy_back();
  held_.after = nullptr;
  dropped.swap(held_.kept);
}

bool Launch::order(const c10::Stream& stream, std::chrono::nanoseconds at_most) {
  void* const handle = handle_of(copies_ ? side_ : stream);
  for (medley::Work& work : held_.works) {
    if (!raising([&] { return work.wait_in(handle, at_most); })) return false;
  }
  if (!copies_) return true;
  const std::lock_guard lock(mutex_);
  copy_back();
  if (copy_problem_) std::rethrow_exception(copy_problem_);
  if (copied_) copied_->block(stream);
  return true;
}

bool Launch::order_program(const c10::Stream& stream, std::chrono::nanoseconds at_most) {
  if (!order(stream, at_most)) return false;
  std::vector<at::Tensor> dropped;
  const std::lock_guard lock(mutex_);
  // The allocator reuses memory freed now in the stream it was allocated in: usually the one that waits.
  if (stream != issued_) record_stream(held_.kept, stream);
  dropped.swap(held_.kept);
  return true;
}

bool Launch::wait_host(std::chrono::nanoseconds at_most) {
  for (medley::Work& work : held_.works) {
    if (!raising([&] { return work.wait_for(at_most); })) return false;
  }
  order(side_, std::chrono::nanoseconds(0));
  const std::lock_guard lock(mutex_);
  if (copied_) copied_->synchronize();
  return true;
}

void Launch::wait_host_until(std::chrono::nanoseconds deadline) {
  for (medley::Work& work : held_.works) raising([&] { work.wait_host(deadline); });
  wait_host(deadline);
}

bool Launch::complete() {
  for (medley::Work& work : held_.works) {
    try {
      if (!work.test()) return false;
    } catch (const Error&) {
      // problem() returns it
    }
  }
  const std::lock_guard lock(mutex_);
  return !copied_ || copied_->query();
}

std::exception_ptr Launch::problem() const {
  for (const medley::Work& work : held_.works) {
    if (const Error* error = work.error()) return std::make_exception_ptr(TorchError(*error));
  }
  const std::lock_guard lock(mutex_);
  return copy_problem_;
}

void Launch::awaited_elsewhere() {
  for (medley::Work& work : held_.works) work.awaited_elsewhere();
}

void Launch::abort() {
  if (!complete()) held_.comm.abort();
}

void Launch::when_complete(const std::function<void()>& callback) {
  if (held_.works.empty()) return callback();
  const auto open = std::make_shared<std::atomic<std::size_t>>(held_.works.size());
  for (medley::Work& work : held_.works) {
    work.on_complete([open, callback] {
      if (--*open == 0) callback();
    });
  }
}

}  // namespace medley::torch
