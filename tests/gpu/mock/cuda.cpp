// CUDA without a device: each stream is a thread with a queue, and the host cannot touch device memory.
#include <cuda_runtime_api.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>

#include "mock.hpp"

namespace {

/// The queue outlives its handle, as CUDA's does.
struct Queue {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> work;
  bool closed = false;

  void run() {
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [this] { return closed || !work.empty(); });
      if (work.empty()) return;
      std::function<void()> next = std::move(work.front());
      work.pop_front();
      lock.unlock();
      next();
      next = nullptr;
      lock.lock();
    }
  }
  void put(std::function<void()> next) {
    const std::lock_guard lock(mutex);
    work.push_back(std::move(next));
    changed.notify_one();
  }
};

/// One recording of an event. A later recording, in this stream or another, does not affect those who wait
/// for it.
struct Recording {
  std::mutex mutex;
  std::condition_variable changed;
  bool reached = false;
  std::chrono::steady_clock::time_point when;
};

/// Memory mapped twice: where the program sees it but may not touch it, and where the device works.
struct Block {
  std::byte* view;
  std::size_t bytes;
};
struct Memory {
  std::mutex mutex;
  std::map<const std::byte*, Block> blocks;
};
Memory& memory() {
  static auto* const all = new Memory;
  return *all;
}

std::atomic<int> devices{1};
thread_local cudaError_t last_error = cudaSuccess;

/// The driver's lock: cudaMemcpy holds it while it waits, and enqueueing in a stream needs it. Ranks that are
/// threads of one process have a driver each.
std::unique_lock<std::mutex> driver_lock() {
  static const char* const ranks = std::getenv("MEDLEY_TEST_RANKS");
  static auto* const mutex = new std::mutex;
  if (ranks && std::string_view(ranks) == "threads") return {};
  return std::unique_lock(*mutex);
}
thread_local int current_device = 0;

cudaError_t fail(cudaError_t error) { return last_error = error; }

}  // namespace

struct MockStream {
  std::shared_ptr<Queue> queue = std::make_shared<Queue>();
  MockStream() {
    std::thread([queue = queue] { queue->run(); }).detach();
  }
  ~MockStream() {
    const std::lock_guard lock(queue->mutex);
    queue->closed = true;
    queue->changed.notify_one();
  }
};
struct MockEvent {
  bool timed = false;
  std::mutex mutex;
  std::shared_ptr<Recording> last;  ///< none yet: counts as reached
  std::shared_ptr<Recording> recording() {
    const std::lock_guard lock(mutex);
    return last;
  }
};

namespace {

MockStream& stream_of(cudaStream_t stream) {
  static auto* const legacy = new MockStream;
  return stream ? *stream : *legacy;
}

std::byte* allocate(std::size_t bytes, bool reachable_by_host) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t whole = (bytes + page - 1) / page * page + page;
  const int file = memfd_create("mock device memory", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, static_cast<off_t>(whole)) != 0) return nullptr;
  void* view = mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  void* seen = reachable_by_host ? view : mmap(nullptr, whole, PROT_NONE, MAP_SHARED, file, 0);
  close(file);
  if (view == MAP_FAILED || seen == MAP_FAILED) return nullptr;
  const std::lock_guard lock(memory().mutex);
  memory().blocks[static_cast<std::byte*>(seen)] = {static_cast<std::byte*>(view), whole};
  return static_cast<std::byte*>(seen);
}

void release(const void* address) {
  const std::lock_guard lock(memory().mutex);
  const auto found = memory().blocks.find(static_cast<const std::byte*>(address));
  if (found == memory().blocks.end()) {
    std::fprintf(stderr, "mock CUDA: freed what is no device memory\n");
    std::abort();
  }
  munmap(found->second.view, found->second.bytes);
  munmap(const_cast<void*>(address), found->second.bytes);
  memory().blocks.erase(found);
}

/// Host memory is mapped once.
std::byte* any_view(const void* address, std::size_t bytes) {
  std::byte* view = medley::mock::device_view(address, bytes);
  return view ? view : static_cast<std::byte*>(const_cast<void*>(address));
}

}  // namespace

namespace medley::mock {

void enqueue(cudaStream_t stream, std::function<void()> work) { stream_of(stream).queue->put(std::move(work)); }

std::byte* device_view(const void* address, std::size_t bytes) {
  const auto* at = static_cast<const std::byte*>(address);
  const std::lock_guard lock(memory().mutex);
  auto found = memory().blocks.upper_bound(at);
  if (found == memory().blocks.begin()) return nullptr;
  --found;
  const auto offset = static_cast<std::size_t>(at - found->first);
  if (offset > found->second.bytes || bytes > found->second.bytes - offset) return nullptr;
  return found->second.view + offset;
}

}  // namespace medley::mock

using medley::mock::device_view;
using medley::mock::enqueue;

extern "C" {

void mock_cuda_devices(int count) { devices = count; }

cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }
const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess: return "no error";
    case cudaErrorNotReady: return "device not ready";
    case cudaErrorNoDevice: return "no CUDA-capable device is detected";
    case cudaErrorInvalidDevice: return "invalid device ordinal";
    case cudaErrorMemoryAllocation: return "out of memory";
    default: return "invalid argument";
  }
}
cudaError_t cudaGetDeviceCount(int* count) {
  *count = devices;
  return devices > 0 ? cudaSuccess : fail(cudaErrorNoDevice);
}
cudaError_t cudaGetDevice(int* device) {
  *device = current_device;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= devices) return fail(cudaErrorInvalidDevice);
  current_device = device;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  std::strcpy(properties->name, "mock");
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
  // A different one for each caller: ranks that are threads or share a machine then have a device each.
  static std::atomic<unsigned> asked{0};
  const unsigned number = asked++;
  std::snprintf(text, static_cast<std::size_t>(length), "%04x:%02x:%02x.%u", static_cast<unsigned>(getpid()) & 0xffff,
                number >> 8 & 0xff, number & 0xff, static_cast<unsigned>(device));
  return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  thread_local cudaStreamCaptureMode current = cudaStreamCaptureModeGlobal;
  std::swap(*mode, current);
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
  *stream = new MockStream;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (const auto recording = event->recording()) {
    enqueue(stream, [recording] {
      std::unique_lock lock(recording->mutex);
      recording->changed.wait(lock, [&] { return recording->reached; });
    });
  }
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
  *status = cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  enqueue(stream, [=] { function(data); });
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  const auto done = std::make_shared<std::atomic<bool>>(false);
  enqueue(stream, [done] {
    *done = true;
    done->notify_all();
  });
  done->wait(false);
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  *event = new MockEvent;
  (*event)->timed = !(flags & cudaEventDisableTiming);
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const auto recording = std::make_shared<Recording>();
  {
    const std::lock_guard lock(event->mutex);
    event->last = recording;
  }
  enqueue(stream, [recording] {
    const std::lock_guard lock(recording->mutex);
    recording->reached = true;
    recording->when = std::chrono::steady_clock::now();
    recording->changed.notify_all();
  });
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  const auto driver = driver_lock();
  const auto recording = event->recording();
  if (!recording) return cudaSuccess;
  const std::lock_guard lock(recording->mutex);
  return recording->reached ? cudaSuccess : fail(cudaErrorNotReady);
}
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t end) {
  const auto first = start->recording(), last = end->recording();
  if (!start->timed || !end->timed || !first || !last) return fail(cudaErrorInvalidValue);
  if (cudaEventQuery(start) != cudaSuccess || cudaEventQuery(end) != cudaSuccess) return fail(cudaErrorNotReady);
  *ms = std::chrono::duration<float, std::milli>(last->when - first->when).count();
  return cudaSuccess;
}

cudaError_t cudaHostAlloc(void** address, size_t bytes, unsigned) {
  *address = allocate(bytes, true);
  return *address ? cudaSuccess : fail(cudaErrorMemoryAllocation);
}
cudaError_t cudaMalloc(void** address, size_t bytes) {
  *address = allocate(bytes, false);
  return *address ? cudaSuccess : fail(cudaErrorMemoryAllocation);
}
cudaError_t cudaFree(void* address) {
  if (address) release(address);
  return cudaSuccess;
}
cudaError_t cudaMallocAsync(void** address, size_t bytes, cudaStream_t) { return cudaMalloc(address, bytes); }
cudaError_t cudaFreeAsync(void* address, cudaStream_t stream) {
  enqueue(stream, [address] { release(address); });
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  if (kind == cudaMemcpyDeviceToDevice && !(device_view(to, bytes) && device_view(from, bytes))) {
    return fail(cudaErrorInvalidValue);
  }
  const auto driver = driver_lock();
  enqueue(stream, [=] { std::memmove(any_view(to, bytes), any_view(from, bytes), bytes); });
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  const cudaError_t result = cudaMemcpyAsync(to, from, bytes, kind, nullptr);
  const auto driver = driver_lock();
  return result == cudaSuccess ? cudaStreamSynchronize(nullptr) : result;
}
cudaError_t cudaMemsetAsync(void* address, int value, size_t bytes, cudaStream_t stream) {
  enqueue(stream, [=] { std::memset(device_view(address, bytes), value, bytes); });
  return cudaSuccess;
}
}
