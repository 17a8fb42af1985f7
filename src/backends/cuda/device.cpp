// The device plugin: the core's interface to CUDA memory, streams and events (medley/sdk/device.hpp).
#include <medley/sdk/block_pool.hpp>
#include <medley/sdk/device.hpp>
#include <medley/sdk/spinlock.hpp>

#include <mutex>

#include "backends/cuda/codec_kernels.hpp"
#include "backends/cuda/cuda.hpp"

namespace medley::cuda {
namespace {

/// Pinned memory of the process, never freed: cudaFreeHost was seen to wait for a spinning kernel, while cudaHostAlloc
/// was not (H200, driver 580).
BlockPool& pinned_blocks() {
  static auto* const only = new BlockPool;
  return *only;
}

int count_devices() {
  int count = 0;
  const cudaError_t result = cudaGetDeviceCount(&count);
  if (result != cudaSuccess || count == 0) {
    cudaGetLastError();
    throw Error(ErrorKind::unavailable,
                fmt::format("CUDA memory cannot be used: {}",
                            result != cudaSuccess ? cudaGetErrorString(result) : "this machine has no CUDA device"));
  }
  return count;
}

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(int index) : index_(index), events_(index) {
    if (const int count = count_devices(); index < 0 || index >= count) {
      throw Error(ErrorKind::unavailable,
                  fmt::format("CUDA device {} does not exist; this machine has {} of them, counted "
                              "from 0",
                              index, count));
    }
#ifdef MEDLEY_HAVE_CODEC_KERNELS
    const Scope scope(index_);
    preload_codecs();
#endif
  }
  ~CudaDevice() override {
    const Relaxed relaxed;
    streams_.clear();
  }

  std::string name() const override {
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, index_), "cudaGetDeviceProperties");
    return properties.name;
  }
  void* record(void* stream) override {
    const OnDevice on(index_, static_cast<cudaStream_t>(stream));
    const std::lock_guard lock(mutex_);
    cudaEvent_t event = events_.take();
    const cudaError_t result = cudaEventRecord(event, static_cast<cudaStream_t>(stream));
    if (result != cudaSuccess) events_.give_back(event);
    check(result, "cudaEventRecord");
    return event;
  }
  void release_event(void* event) noexcept override {
    const std::lock_guard lock(mutex_);
    events_.give_back(static_cast<cudaEvent_t>(event));
  }
  bool completed(void* event) override {
    const Scope scope(index_);
    return cuda::reached(static_cast<cudaEvent_t>(event));
  }
  void wait(void* stream, void* event) override {
    const OnDevice on(index_, static_cast<cudaStream_t>(stream));
    check(cudaStreamWaitEvent(static_cast<cudaStream_t>(stream), static_cast<cudaEvent_t>(event), 0),
          "cudaStreamWaitEvent");
  }
  bool capturing(void* stream) override {
    if (!stream) return false;  // the legacy stream cannot be captured, and querying it invalidates captures elsewhere
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    check(cudaStreamIsCapturing(static_cast<cudaStream_t>(stream), &status), "cudaStreamIsCapturing");
    return status != cudaStreamCaptureStatusNone;
  }
  void* pinned(std::size_t bytes) override {
    if (void* kept = pinned_blocks().take(bytes)) return kept;
    const Scope scope(index_);
    void* memory = nullptr;
    check(cudaHostAlloc(&memory, bytes, cudaHostAllocPortable), "cudaHostAlloc");
    return memory;
  }
  void release_pinned(void* memory, std::size_t bytes) noexcept override {
    pinned_blocks().keep(static_cast<std::byte*>(memory), bytes);
  }
  void* make_stream() override {
    const Scope scope(index_);
    const std::lock_guard lock(mutex_);
    return streams_.emplace_back(Stream::Priority::high).get();
  }
  void copy(void* to, const void* from, std::size_t bytes, void* stream) override {
    const Scope scope(index_);
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, static_cast<cudaStream_t>(stream)), "cudaMemcpyAsync");
  }
#ifdef MEDLEY_HAVE_CODEC_KERNELS
  bool has_codecs() const override { return true; }
  void encode(const DeviceFrame& frame, const void* elements, float* residual, void* stream) override {
    const Scope scope(index_);
    cuda::encode(frame, elements, residual, static_cast<cudaStream_t>(stream));
  }
  void decode(const DeviceFrame& frame, void* elements, void* stream) override {
    const Scope scope(index_);
    cuda::decode(frame, elements, static_cast<cudaStream_t>(stream));
  }
  void combine(const DeviceReduction& reduction, void* stream) override {
    const Scope scope(index_);
    cuda::combine(reduction, static_cast<cudaStream_t>(stream));
  }
#endif
  void* allocate_in(std::size_t bytes, void* stream) override {
    const Scope scope(index_);
    void* memory = nullptr;
    check(cudaMallocAsync(&memory, bytes, static_cast<cudaStream_t>(stream)), "cudaMallocAsync");
    return memory;
  }
  void* allocate_zeros(std::size_t bytes, void* stream) override {
    const Scope scope(index_);
    void* const memory = allocate_in(bytes, stream);
    const cudaError_t result = cudaMemsetAsync(memory, 0, bytes, static_cast<cudaStream_t>(stream));
    if (result != cudaSuccess) free_in(memory, stream);
    check(result, "cudaMemsetAsync");
    return memory;
  }
  void free_in(void* memory, void* stream) noexcept override {
    const Relaxed relaxed;  // as every other call here, in spite of a capture on this thread
    cudaFreeAsync(memory, static_cast<cudaStream_t>(stream));
  }
  void* allocate(std::size_t bytes) override {
    const Scope scope(index_);
    void* memory = nullptr;
    check(cudaMalloc(&memory, bytes), "cudaMalloc");
    return memory;
  }
  void free(void* memory) noexcept override { cudaFree(memory); }
  void copy_now(void* to, const void* from, std::size_t bytes) override {
    const Scope scope(index_);
    check(cudaMemcpy(to, from, bytes, cudaMemcpyDefault), "cudaMemcpy");
  }

 private:
  const int index_;
  Spinlock mutex_;  // held for one CUDA call, nearly always by the engine, so there is no contention
  EventPool events_;
  std::vector<Stream> streams_;
};

}  // namespace
}  // namespace medley::cuda

extern "C" MEDLEY_API const medley::DevicePlugin* medley_device() {
  static const medley::DevicePlugin plugin{
      .abi = medley::device_abi,
      .open = [](int index) -> std::unique_ptr<medley::Device> {
        return std::make_unique<medley::cuda::CudaDevice>(index);
      },
      .count = medley::cuda::count_devices,
  };
  return &plugin;
}
