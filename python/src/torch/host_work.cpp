#include "host_work.hpp"

#include <ATen/ATen.h>
#include <ATen/core/ivalue.h>
#include <medley/error.hpp>

#include <utility>

#include "backward_waits.hpp"
#include "callback_threads.hpp"
#include "gil.hpp"
#include "torch_error.hpp"

namespace medley::torch {

c10::intrusive_ptr<HostWork> HostWork::make(const Title& title, const std::vector<at::Tensor>& inputs,
                                            std::vector<at::Tensor> outputs, Held held) {
  auto self = c10::make_intrusive<HostWork>(title, inputs, std::move(outputs), std::move(held));
  auto& works = self->held_.works;
  std::erase_if(
      works, [](const medley::Work& work) { return work.complete() && !work.error() && work.source() < 0; });
  if (works.empty()) {
    self->settle();
    return self;
  }
  self->open_ = static_cast<int>(works.size());
  for (medley::Work& work : works) {
    work.on_complete([self] {  // keeps the tensors alive until then, whether or not torch keeps the work
      if (--self->open_ == 0) self->settle();
    });
  }
  return self;
}

void HostWork::settle() {
  {
    const std::lock_guard lock(settle_mutex_);
    if (!std::exchange(settled_, true)) settle_once();
  }
  tell_future();
}

void HostWork::settle_once() {
  std::exception_ptr problem;
  for (const medley::Work& work : held_.works) {
    if (const Error* error = work.error(); error && !problem)
      problem = std::make_exception_ptr(TorchError(*error));
  }
  if (!problem && held_.after) {
    try {
      held_.after();
    } catch (...) {
      problem = std::current_exception();
    }
  }
  held_.after = nullptr;
  held_.kept.clear();
  held_.comm = {};
  held_.feedbacks.clear();
  finish(problem);
}

bool HostWork::isCompleted() {
  const std::lock_guard lock(mutex_);
  return completed_;
}

bool HostWork::isSuccess() const {
  const std::lock_guard lock(mutex_);
  return !exception_;
}

std::exception_ptr HostWork::exception() const {
  const std::lock_guard lock(mutex_);
  return exception_;
}

bool HostWork::wait(std::chrono::milliseconds timeout) {
  if (!isCompleted()) {
    for (medley::Work& work : held_.works) {
      try {
        if (timeout == kNoTimeout) {
          while (!work.wait_for(between_signals)) check_signals();
        } else {
          work.wait(timeout);
        }
      } catch (const Error&) {
        // settle() collects it
      }
    }
    settle();
  }
  if (const auto problem = exception()) std::rethrow_exception(problem);
  return true;
}

void HostWork::abort() {
  Comm comm;
  {
    const std::lock_guard lock(settle_mutex_);
    if (settled_) return;
    comm = held_.comm;
  }
  comm.abort();  // aborts the whole communicator, as nccl does: the other ranks' parts cannot be cancelled alone
}

int HostWork::sourceRank() const {
  return held_.works.empty() ? -1 : held_.works.front().source();
}

c10::intrusive_ptr<c10::ivalue::Future> HostWork::getFuture() {
  const std::lock_guard lock(future_mutex_);
  if (future_) return future_;
  future_ = c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()));
  if (isCompleted()) {  // nobody else has the future yet, so it has no callbacks
    future_told_ = true;
    complete_future();
    return future_;
  }
  for (medley::Work& work : held_.works) work.awaited_elsewhere();
  record_waits_of_backward(held_.works);
  return future_;
}

/// Called once the operation is complete.
void HostWork::tell_future() {
  {
    const std::lock_guard lock(future_mutex_);
    if (!future_ || std::exchange(future_told_, true)) return;
  }
  run_apart([self = c10::intrusive_ptr<HostWork>::reclaim_copy(this)] { self->complete_future(); });
}

void HostWork::complete_future() {
  if (const auto problem = exception()) {
    future_->setError(problem);
  } else {
    future_->markCompleted(c10::IValue(outputs_));
  }
}

}  // namespace medley::torch
