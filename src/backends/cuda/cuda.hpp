// What every use of the CUDA runtime needs: errors as exceptions, the right device, RAII streams and events. Shared by
// the device plugin and the nccl backend.
#pragma once

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <cstdint>
#include <medley/error.hpp>
#include <utility>
#include <vector>

namespace medley::cuda {

inline void check(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  cudaGetLastError();  // otherwise the program's next call would report it
  throw Error(ErrorKind::system, fmt::format("{} failed: {}", what, cudaGetErrorString(result)));
}

/// The default streams, legacy and per-thread, belong to whichever device is current; every other stream knows its own.
inline bool of_current_device(cudaStream_t stream) { return reinterpret_cast<std::uintptr_t>(stream) <= 2; }

/// Scoped: makes a device current. Sufficient for calls that are allowed in every capture (recording an event, making a
/// stream wait for one), and needed for these in a default stream only.
class OnDevice {
 public:
  explicit OnDevice(int device) { change_to(device); }
  OnDevice(int device, cudaStream_t stream) {
    if (of_current_device(stream)) change_to(device);
  }
  ~OnDevice() {
    if (changed_) cudaSetDevice(before_);
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  void change_to(int device) {
    check(cudaGetDevice(&before_), "cudaGetDevice");
    changed_ = before_ != device;
    if (changed_) check(cudaSetDevice(device), "cudaSetDevice");
  }
  int before_ = 0;
  bool changed_ = false;
};

/// Scoped: a capture mode in which calls are allowed while another thread captures.
class Relaxed {
 public:
  Relaxed() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  ~Relaxed() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  Relaxed(const Relaxed&) = delete;
  Relaxed& operator=(const Relaxed&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

/// Both of these.
class Scope {
 public:
  explicit Scope(int device) : device_(device) {}

 private:
  Relaxed relaxed_;
  OnDevice device_;
};

/// A non-blocking stream: it does not synchronize with the legacy default stream.
class Stream {
 public:
  enum class Priority { normal, high };
  explicit Stream(Priority priority) {
    int least = 0, greatest = 0;
    check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "cudaDeviceGetStreamPriorityRange");
    check(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, priority == Priority::high ? greatest : least),
          "cudaStreamCreateWithPriority");
  }
  Stream(Stream&& other) noexcept : stream_(std::exchange(other.stream_, nullptr)) {}
  Stream& operator=(Stream&&) = delete;
  ~Stream() {
    if (stream_) cudaStreamDestroy(stream_);  // its work goes on; CUDA frees it afterwards
  }
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

/// A pool of events, since making one costs more than recording it. For one device, under its owner's lock.
class EventPool {
 public:
  enum class Times { no, yes };
  explicit EventPool(int device, Times times = Times::no)
      : device_(device), flags_(times == Times::yes ? cudaEventDefault : cudaEventDisableTiming) {}
  EventPool(const EventPool&) = delete;
  EventPool& operator=(const EventPool&) = delete;
  ~EventPool() {
    for (cudaEvent_t event : free_) cudaEventDestroy(event);
  }
  cudaEvent_t take() {
    cudaEvent_t event = nullptr;
    if (free_.empty()) {
      const Scope scope(device_);
      check(cudaEventCreateWithFlags(&event, flags_), "cudaEventCreateWithFlags");
      return event;
    }
    event = free_.back();
    free_.pop_back();
    return event;
  }
  void give_back(cudaEvent_t event) noexcept { free_.push_back(event); }

 private:
  int device_;
  unsigned flags_;
  std::vector<cudaEvent_t> free_;
};

inline bool reached(cudaEvent_t event) {
  const cudaError_t result = cudaEventQuery(event);
  if (result == cudaErrorNotReady) {
    cudaGetLastError();
    return false;
  }
  check(result, "cudaEventQuery");
  return true;
}

}  // namespace medley::cuda
