#include "stream_work.hpp"

#include <ATen/core/ivalue.h>
#include <c10/core/StreamGuard.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <string_view>

#include "callback_threads.hpp"
#include "cuda.hpp"
#include "gil.hpp"

namespace medley::torch {
namespace {

/// Programs that want the host to wait set nccl's variable.
bool blocking_wait() {
  static const bool asked = [] {
    const char* text = std::getenv("TORCH_NCCL_BLOCKING_WAIT");
    return text && std::string_view(text) == "1";
  }();
  return asked;
}

}  // namespace

StreamWork::StreamWork(const Title& title, const std::vector<at::Tensor>& inputs,
                       std::vector<at::Tensor> outputs, Launches launches, c10::Device device)
    : TorchWork(title, inputs, std::move(outputs)), launches_(std::move(launches)), device_(device) {
  if (recordFunctionEndCallback_) recordFunctionEndCallback_();  // for the profiler it ends at launch
}

bool StreamWork::isCompleted() {
  return std::all_of(launches_.begin(), launches_.end(),
                     [](const auto& launch) { return launch->complete(); });
}

bool StreamWork::isSuccess() const {
  return !exception();
}

std::exception_ptr StreamWork::exception() const {
  for (const auto& launch : launches_) {
    if (const auto problem = launch->problem()) return problem;
  }
  return nullptr;
}

void StreamWork::wait_on_host(std::chrono::milliseconds timeout) {
  for (const auto& launch : launches_) {
    if (timeout != kNoTimeout) {
      launch->wait_host_until(timeout);
    } else {
      while (!launch->wait_host(between_signals)) check_signals();
    }
  }
}

bool StreamWork::wait(std::chrono::milliseconds timeout) {
  if (timeout != kNoTimeout || opType_ == c10d::OpType::BARRIER || blocking_wait()) wait_on_host(timeout);
  synchronize();
  return true;
}

void StreamWork::synchronize() {
  const c10::Stream stream = current_stream(device_);
  for (const auto& launch : launches_) {
    while (!launch->order_program(stream, between_signals)) check_signals();
  }
}

void StreamWork::abort() {
  for (const auto& launch : launches_) launch->abort();
}

int StreamWork::sourceRank() const {
  return launches_.empty() ? -1 : launches_.front()->source();
}

c10::intrusive_ptr<c10::ivalue::Future> StreamWork::getFuture() {
  const std::lock_guard lock(future_mutex_);
  if (future_) return future_;
  future_ = c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()),
                                                     std::vector<c10::Device>{device_});
  // Nobody else has the future yet, so it has no callbacks.
  if (!tell_future(future_)) tell_future_when_complete();
  for (const auto& launch : launches_) launch->awaited_elsewhere();
  return future_;
}

/// Its value is ready once the side stream reaches this point; false if that stream cannot be ordered yet.
bool StreamWork::tell_future(const c10::intrusive_ptr<c10::ivalue::Future>& future) {
  try {
    for (const auto& launch : launches_) {
      if (!launch->order(launches_.front()->side(), std::chrono::nanoseconds(0))) return false;
    }
  } catch (...) {
    future->setError(std::current_exception());
    return true;
  }
  const c10::StreamGuard guard(launches_.front()->side());
  future->markCompleted(c10::IValue(outputs_));
  return true;
}

void StreamWork::tell_future_when_complete() {
  const auto open = std::make_shared<std::atomic<std::size_t>>(launches_.size());
  const auto self = c10::intrusive_ptr<StreamWork>::reclaim_copy(this);
  for (const auto& launch : launches_) {
    launch->when_complete([self, open] {
      if (--*open == 0) run_apart([self] { self->tell_future(self->future_); });
    });
  }
}

}  // namespace medley::torch
