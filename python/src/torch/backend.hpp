// The torch.distributed backend: c10d's operations on a Medley comm. torch.distributed makes one per process
// group. Issuing an operation never blocks, unless torch says that it waits for the operation anyway.
#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <atomic>
#include <mutex>
#include <optional>

#include "group.hpp"
#include "profile.hpp"
#include "routes.hpp"
#include "stream_work.hpp"
#include "tensors.hpp"
#include "torch_error.hpp"

namespace medley::torch {

/// Options of a group: `pg_options=medley.torch.Options(...)`.
struct GroupOptions : c10d::Backend::Options {
  GroupOptions() : c10d::Backend::Options("medley") {}
  std::string rules;  ///< routing rules, see medley/rules.hpp
  std::vector<std::string> backends;
  std::string algorithm;
  bool deterministic = false;
  /// torch requires equal sizes of a send and its receive. False allows receives from any source where messages take several routes.
  bool exact = true;
};

using WorkPtr = c10::intrusive_ptr<c10d::Work>;
using Tensors = std::vector<at::Tensor>;

class TorchBackend final : public c10d::Backend {
 public:
  TorchBackend(const Membership& membership, const c10::intrusive_ptr<GroupOptions>& options);
  /// A group of some members of another; `ranks` are the members' ranks in `parent`'s context.
  TorchBackend(const Joined& parent, const Membership& membership, std::vector<int> ranks,
               const c10::intrusive_ptr<GroupOptions>& options);
  ~TorchBackend() override;

  const std::string getBackendName() const override { return "medley"; }
  /// A copy: ProcessGroup::splitGroup writes the new group's name and timeout into it.
  c10::intrusive_ptr<Options> getBackendOptions() override {
    return c10::make_intrusive<GroupOptions>(*options_);
  }
  bool supportsCoalescing() const override { return true; }
  bool supportsSplitting() const override { return true; }
  /// A group of these ranks of this group, created by them alone; null on the others.
  c10::intrusive_ptr<c10d::Backend> split(const c10::intrusive_ptr<c10d::Store>& store,
                                          const std::vector<int>& ranks,
                                          const c10::intrusive_ptr<Options>& options) override;
  /// A group with ranks of other jobs, which rendezvous in this store.
  c10::intrusive_ptr<c10d::Backend> merge(const c10::intrusive_ptr<c10d::Store>& store,
                                          const c10::intrusive_ptr<Options>& options, const int& rank,
                                          const int& size) override;
  void setTimeout(std::chrono::milliseconds timeout) override { options_->timeout = timeout; }
  void setSequenceNumberForGroup() override {}  // every group starts at 0
  std::uint64_t getSequenceNumberForGroup() override { return sequence_; }
  c10d::ErrorType getError() override;
  void abort() override;
  void shutdown() override;

  WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& opts) override;
  WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& opts) override;
  WorkPtr allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& opts) override;
  WorkPtr allreduce_coalesced(Tensors& tensors, const c10d::AllreduceCoalescedOptions& opts) override;
  WorkPtr reduce(Tensors& tensors, const c10d::ReduceOptions& opts) override;
  WorkPtr allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                    const c10d::AllgatherOptions& opts) override;
  WorkPtr _allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& opts) override;
  WorkPtr allgather_coalesced(std::vector<Tensors>& outputs, Tensors& inputs,
                              const c10d::AllgatherOptions& opts) override;
  WorkPtr allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::AllgatherOptions& opts) override;
  WorkPtr gather(std::vector<Tensors>& outputs, Tensors& inputs, const c10d::GatherOptions& opts) override;
  WorkPtr scatter(Tensors& outputs, std::vector<Tensors>& inputs, const c10d::ScatterOptions& opts) override;
  WorkPtr reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                         const c10d::ReduceScatterOptions& opts) override;
  WorkPtr _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                               const c10d::ReduceScatterOptions& opts) override;
  WorkPtr reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::ReduceScatterOptions& opts) override;
  WorkPtr alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<std::int64_t>& output_splits,
                        std::vector<std::int64_t>& input_splits, const c10d::AllToAllOptions& opts) override;
  WorkPtr alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& opts) override;
  WorkPtr send(Tensors& tensors, int to, int tag) override;
  WorkPtr recv(Tensors& tensors, int from, int tag) override;
  WorkPtr recvAnysource(Tensors& tensors, int tag) override;
  WorkPtr barrier(const c10d::BarrierOptions& opts) override;
  void monitoredBarrier(const c10d::BarrierOptions& opts, bool wait_all_ranks) override;

  /// Until endCoalescing(), operations are collected into one Work. Called by one thread at a time.
  void startCoalescing() override;
  WorkPtr endCoalescing() override;

 private:
  /// Options of one call; owns the strings they point to, for the duration of the call.
  class Issue {
   public:
    Issue(const TorchBackend& owner, const Call& call, std::chrono::milliseconds timeout, int tag = 0);
    const medley::Options& options() const { return options_; }

   private:
    Choice choice_;
    medley::Options options_;
    Profiled profiled_;
  };

  TorchBackend(const Membership& membership, Joined joined, const c10::intrusive_ptr<GroupOptions>& options);
  Comm& comm();
  /// Issues an operation: `start` calls Medley on the group's comm with the options of this call.
  template <typename Start>
  medley::Work issue(const Call& call, std::chrono::milliseconds timeout, const Start& start, int tag = 0) {
    const Issue options(*this, call, timeout, tag);
    return raising([&] { return start(comm(), options.options()); });
  }
  /// Operations that `start_all` issues travel fused where that pays (medley/fuse.hpp).
  template <typename StartAll>
  void fused(const StartAll& start_all) {
    Fuse scope(raising([&] { return comm(); }));
    start_all();
    raising([&] { scope.flush(); });
  }
  /// `device`: for an operation without tensors.
  WorkPtr finished(c10d::OpType type, const char* title, const Tensors& inputs, const Tensors& outputs,
                   const Staging& staging, std::vector<medley::Work> works,
                   std::optional<c10::Device> device = {});
  c10::Stream side();
  void check_device(const Call& call) const;
  WorkPtr message(c10d::OpType type, const char* title, const at::Tensor& tensor, int peer, int tag);
  medley::Work start_allreduce(const at::Tensor& tensor, const c10d::ReduceOp& op,
                               std::chrono::milliseconds timeout, bool async, Staging& staging);
  medley::Work start_allgather(const at::Tensor& output, const at::Tensor& input,
                               const c10d::AllgatherOptions& opts, bool async);
  medley::Work start_reduce_scatter(const at::Tensor& output, const at::Tensor& input,
                                    const c10d::ReduceScatterOptions& opts, bool async, Staging& staging);

  Joined joined_;
  c10::intrusive_ptr<c10d::Store> store_;
  c10::intrusive_ptr<GroupOptions> options_;
  const int device_;  ///< the CUDA device
  bool default_group_;
  std::atomic<bool> closed_{false};
  std::atomic<std::uint64_t> sequence_{0};
  std::uint64_t monitored_ = 0;
  bool cuda_collectives_ = false;  ///< the group has had some, on all ranks alike
  std::once_flag side_made_;
  std::optional<c10::Stream> side_;
  bool coalescing_ = false;
  std::optional<Fuse> fuse_;  ///< while operations are coalesced
  std::vector<c10::intrusive_ptr<TorchWork>> coalesced_;
};

}  // namespace medley::torch
