// An operation on CUDA tensors, with nccl's semantics in torch: waiting makes the current stream wait, and
// the host only until that is possible; its future carries streams, too.
#pragma once

#include <mutex>

#include "launch.hpp"

namespace medley::torch {

class StreamWork final : public TorchWork {
 public:
  using Launches = std::vector<std::shared_ptr<Launch>>;
  StreamWork(const Title& title, const std::vector<at::Tensor>& inputs, std::vector<at::Tensor> outputs,
             Launches launches, c10::Device device);

  bool isCompleted() override;
  bool isSuccess() const override;
  std::exception_ptr exception() const override;
  /// With a timeout, after a barrier and with TORCH_NCCL_BLOCKING_WAIT=1 the host also waits.
  bool wait(std::chrono::milliseconds timeout) override;
  void synchronize() override;
  void abort() override;
  int sourceRank() const override;
  /// Complete as soon as streams can be ordered after the operation; over nccl, immediately.
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;

  const Launches& launches() const { return launches_; }

 private:
  bool tell_future(const c10::intrusive_ptr<c10::ivalue::Future>& future);
  void tell_future_when_complete();
  void wait_on_host(std::chrono::milliseconds timeout);

  Launches launches_;
  c10::Device device_;
  std::mutex future_mutex_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

}  // namespace medley::torch
