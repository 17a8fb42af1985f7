#include "work.hpp"

#include <ATen/ATen.h>
#include <ATen/core/ivalue.h>
#include <medley/error.hpp>

#include <utility>

#include "cuda.hpp"
#include "gil.hpp"

namespace medley::torch {
TorchWork::TorchWork(int rank, c10d::OpType type, const char* title, const std::vector<at::Tensor>& inputs,
                     std::uint64_t sequence)
    : c10d::Work(rank, type, title, inputs), sequence_(sequence) {}

void TorchWork::watch(const c10::intrusive_ptr<TorchWork>& self, Parts parts) {
  self->parts_ = std::move(parts);
  auto& works = self->parts_.works;
  std::erase_if(
      works, [](const medley::Work& work) { return work.complete() && !work.error() && work.source() < 0; });
  if (works.empty()) return self->settle();
  self->open_ = static_cast<int>(works.size());
  for (medley::Work& work : works) {
    work.on_complete([self] {  // keeps the tensors until then, whether or not torch keeps the work
      if (--self->open_ == 0) self->settle();
    });
  }
}

void TorchWork::settle() {
  {
    const std::lock_guard lock(settle_mutex_);
    if (!std::exchange(settled_, true)) settle_once();
  }
  tell_future();
}

void TorchWork::settle_once() {
  std::exception_ptr problem;
  for (const medley::Work& work : parts_.works) {
    if (const Error* error = work.error(); error && !problem) problem = std::make_exception_ptr(*error);
  }
  if (!problem && parts_.after) {
    try {
      parts_.after();
    } catch (...) {
      problem = std::current_exception();
    }
  }
  parts_.after = nullptr;
  parts_.kept.clear();
  parts_.comm = {};
  finish(problem);
}

bool TorchWork::isCompleted() {
  const std::lock_guard lock(mutex_);
  return completed_;
}

bool TorchWork::isSuccess() const {
  const std::lock_guard lock(mutex_);
  return !exception_;
}

std::exception_ptr TorchWork::exception() const {
  const std::lock_guard lock(mutex_);
  return exception_;
}

bool TorchWork::wait(std::chrono::milliseconds timeout) {
  if (!isCompleted()) {
    for (medley::Work& work : parts_.works) {
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
  synchronize();
  return true;
}

void TorchWork::synchronize() {
  let_stream_wait(parts_.outputs);
}

void TorchWork::abort() {
  Comm comm;
  {
    const std::lock_guard lock(settle_mutex_);
    if (settled_) return;
    comm = parts_.comm;
  }
  comm.abort();  // as with nccl, the whole communicator: the other ranks' parts cannot be taken back alone
}

int TorchWork::sourceRank() const {
  return parts_.works.empty() ? -1 : parts_.works.front().source();
}

std::vector<at::Tensor> TorchWork::result() {
  return parts_.outputs;
}

c10::intrusive_ptr<c10::ivalue::Future> TorchWork::getFuture() {
  {
    const std::lock_guard lock(future_mutex_);
    if (!future_) {
      future_ = c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()),
                                                         devices_of(parts_.outputs));
    }
  }
  if (isCompleted()) tell_future();
  return future_;
}

void TorchWork::tell_future() {
  {
    const std::lock_guard lock(future_mutex_);
    if (!future_ || future_told_) return;
    future_told_ = true;
  }
  // Without the lock: callbacks of the future run here and may ask this work again.
  if (const auto problem = exception()) {
    future_->setError(problem);
  } else {
    future_->markCompleted(c10::IValue(parts_.outputs));
  }
}

}  // namespace medley::torch
