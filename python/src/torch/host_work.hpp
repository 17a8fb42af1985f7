// An operation on CPU tensors. The thread that sees its completion, a waiter or the context's progress
// thread, copies back what was staged; a callback thread completes the future, if one was requested.
#pragma once

#include <atomic>
#include <mutex>

#include "work.hpp"

namespace medley::torch {

class HostWork final : public TorchWork {
 public:
  /// Complete now, or when its last work completes.
  static c10::intrusive_ptr<HostWork> make(const Title& title, const std::vector<at::Tensor>& inputs,
                                           std::vector<at::Tensor> outputs, Held held);

  HostWork(const Title& title, const std::vector<at::Tensor>& inputs, std::vector<at::Tensor> outputs,
           Held held)
      : TorchWork(title, inputs, std::move(outputs)), held_(std::move(held)) {}

  bool isCompleted() override;
  bool isSuccess() const override;
  std::exception_ptr exception() const override;
  bool wait(std::chrono::milliseconds timeout) override;
  void synchronize() override {}
  void abort() override;
  int sourceRank() const override;
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;

  /// For operations that consist of others, which must be kept alive.
  const std::vector<medley::Work>& works() const { return held_.works; }

 private:
  void settle();
  void settle_once();
  void tell_future();
  void complete_future();

  Held held_;
  std::atomic<int> open_{0};  ///< works whose callback has not run yet
  std::mutex settle_mutex_;   ///< not a once_flag, whose setting always enters the kernel
  bool settled_ = false;
  std::mutex future_mutex_;
  bool future_told_ = false;  ///< some thread completes it
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

}  // namespace medley::torch
