// One operation of a process group as torch sees it: a c10d::Work over one or several Medley operations.
// Who finds it complete, a waiter or the context's progress thread, copies back what was staged and tells the
// future.
#pragma once

#include <medley/work.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <atomic>
#include <functional>
#include <mutex>
#include <vector>

namespace medley::torch {

// How soon Ctrl-C is noticed: short for a person, long beside the cost of taking Python's lock.
constexpr std::chrono::milliseconds between_signals{100};

class TorchWork final : public c10d::Work {
 public:
  /// What the operation holds until it is complete.
  struct Parts {
    std::vector<medley::Work> works;
    std::vector<at::Tensor> outputs;  ///< its result
    std::vector<at::Tensor> kept;     ///< whatever else must stay alive
    std::function<void()> after;      ///< to be run once when all works are complete
    Comm comm;                        ///< what abort() ends
  };

  TorchWork(int rank, c10d::OpType type, const char* title, const std::vector<at::Tensor>& inputs,
            std::uint64_t sequence);

  /// Completes it now, or when its last work is complete.
  static void watch(const c10::intrusive_ptr<TorchWork>& self, Parts parts);

  bool isCompleted() override;
  bool isSuccess() const override;
  std::exception_ptr exception() const override;
  bool wait(std::chrono::milliseconds timeout) override;
  void synchronize() override;
  void abort() override;
  int sourceRank() const override;
  std::vector<at::Tensor> result() override;
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  std::uint64_t getSequencenumber() const override { return sequence_; }

  /// For operations that consist of others; they must be kept alive by `kept`.
  const std::vector<medley::Work>& works() const { return parts_.works; }

 private:
  void settle();
  void settle_once();
  void tell_future();

  Parts parts_;
  std::uint64_t sequence_;
  std::atomic<int> open_{0};  ///< works that have not called back
  std::mutex settle_mutex_;   ///< not a once_flag, which enters the kernel each time it is set
  bool settled_ = false;
  std::mutex future_mutex_;
  bool future_told_ = false;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

}  // namespace medley::torch
