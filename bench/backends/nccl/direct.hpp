// The operations that nccl_overhead compares, directly on NCCL: the same calls as in Medley's nccl lane, with
// the same events, which order its stream after the user's and the user's after it.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <stdexcept>

namespace direct {

inline void check(cudaError_t result) {
  if (result != cudaSuccess) throw std::runtime_error(cudaGetErrorString(result));
}
inline void check(ncclResult_t result) {
  if (result != ncclSuccess) throw std::runtime_error(ncclGetErrorString(result));
}

/// One communicator with its own stream.
class Lane {
 public:
  Lane(const ncclUniqueId& id, int ranks, int rank) : ranks_(ranks), rank_(rank) {
    check(ncclCommInitRank(&comm_, ranks, id, rank));
    int least = 0, greatest = 0;
    check(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    check(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, greatest));
    for (auto& pair : events_) {
      for (cudaEvent_t& event : pair) check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    }
  }
  void all_reduce(const float* in, float* out, std::size_t count, cudaStream_t user) {
    between(user, [&] { return ncclAllReduce(in, out, count, ncclFloat32, ncclMax, comm_, stream_); });
  }
  void all_gather(const float* in, float* out, std::size_t count, cudaStream_t user) {
    between(user, [&] { return ncclAllGather(in, out, count / parts(), ncclFloat32, comm_, stream_); });
  }
  void reduce_scatter(const float* in, float* out, std::size_t count, cudaStream_t user) {
    between(user, [&] { return ncclReduceScatter(in, out, count / parts(), ncclFloat32, ncclMax, comm_, stream_); });
  }
  void broadcast(float* data, std::size_t count, cudaStream_t user) {
    between(user, [&] { return ncclBroadcast(data, data, count, ncclFloat32, 0, comm_, stream_); });
  }
  void all_to_all(const float* in, float* out, std::size_t count, cudaStream_t user) {
    const std::size_t each = count / parts();
    between(user, [&] {
      check(ncclGroupStart());
      for (int r = 0; r < ranks_; ++r) {
        check(ncclSend(in + static_cast<std::size_t>(r) * each, each, ncclFloat32, r, comm_, stream_));
        check(ncclRecv(out + static_cast<std::size_t>(r) * each, each, ncclFloat32, r, comm_, stream_));
      }
      return ncclGroupEnd();
    });
  }
  /// From rank 0 to rank 1.
  void message(float* data, std::size_t count, cudaStream_t user) {
    between(user, [&] {
      return rank_ == 0 ? ncclSend(data, count, ncclFloat32, 1, comm_, stream_)
                        : ncclRecv(data, count, ncclFloat32, 0, comm_, stream_);
    });
  }

 private:
  std::size_t parts() const { return static_cast<std::size_t>(ranks_); }
  template <class Call>
  void between(cudaStream_t user, Call call) {
    auto& [ready, done] = events_[next_++ % std::size(events_)];
    check(cudaEventRecord(ready, user));
    check(cudaStreamWaitEvent(stream_, ready, 0));
    check(call());
    check(cudaEventRecord(done, stream_));
    check(cudaStreamWaitEvent(user, done, 0));
  }

  int ranks_, rank_;
  ncclComm_t comm_ = nullptr;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t events_[64][2] = {};
  unsigned next_ = 0;
};

}  // namespace direct
