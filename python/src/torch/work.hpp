// One operation of a process group as torch sees it: a c10d::Work over one or several Medley operations, on
// CPU tensors a HostWork, on CUDA tensors a StreamWork. Made by every call of the backend.
#pragma once

#include <medley/comm.hpp>
#include <medley/error_feedback.hpp>
#include <medley/work.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <functional>
#include <memory>
#include <vector>

namespace medley::torch {

// Interval of Ctrl-C checks: short for a person, long compared with taking the GIL.
constexpr std::chrono::milliseconds between_signals{100};

/// An operation's description for torch.
struct Title {
  int rank = 0;
  c10d::OpType type{};
  const char* name = nullptr;
  std::uint64_t sequence = 0;
};

/// What an operation holds until it completes.
struct Held {
  std::vector<medley::Work> works;
  std::vector<at::Tensor> kept;  ///< objects that must stay alive
  std::function<void()> after;   ///< runs once when all works are complete, or in a stream after them
  Comm comm;                     ///< the comm that abort() aborts
  std::vector<std::shared_ptr<ErrorFeedback>> feedbacks{};   ///< the works read and write them
};

class TorchWork : public c10d::Work {
 public:
  std::vector<at::Tensor> result() override { return outputs_; }
  std::uint64_t getSequencenumber() const override { return sequence_; }

 protected:
  TorchWork(const Title& title, const std::vector<at::Tensor>& inputs, std::vector<at::Tensor> outputs)
      : c10d::Work(title.rank, title.type, title.name, inputs),
        outputs_(std::move(outputs)),
        sequence_(title.sequence) {}

  const std::vector<at::Tensor> outputs_;

 private:
  std::uint64_t sequence_;
};

}  // namespace medley::torch
