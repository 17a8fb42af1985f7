// What the core needs from CUDA, without linking it: pinned memory, copies, events. Implemented by the shared object
// libmedley_device_cuda.so next to the backends; used by the engine and for staging CUDA buffers.
#pragma once

#include <cstddef>
#include <medley/error.hpp>
#include <medley/export.hpp>
#include <medley/sdk/device_codec.hpp>
#include <memory>
#include <string>
#include <string_view>

namespace medley {

inline constexpr std::string_view device_abi = "medley-device-3";

/// One CUDA device as one context uses it. Streams and events are CUDA's own handles. Every method may be called from
/// any thread, preserves the thread's current device, and is allowed while another thread captures a graph. Only
/// copy_now() waits for work on the device.
class Device {
 public:
  virtual ~Device() = default;
  virtual std::string name() const = 0;

  /// Records an event from a pool in the stream; give it back with release_event().
  virtual void* record(void* stream) = 0;
  virtual void release_event(void* event) noexcept = 0;
  /// Whether all work before the event has completed.
  virtual bool completed(void* event) = 0;
  virtual void wait(void* stream, void* event) = 0;
  virtual bool capturing(void* stream) = 0;

  /// Page-locked host memory from a pool of the process. It is never freed, since freeing waits for all running
  /// kernels.
  virtual void* pinned(std::size_t bytes) = 0;
  virtual void release_pinned(void* memory, std::size_t bytes) noexcept = 0;

  /// A non-blocking stream. Streams live as long as the device.
  virtual void* make_stream() = 0;
  virtual void copy(void* to, const void* from, std::size_t bytes, void* stream) = 0;
  /// Device memory in stream order: usable by work behind this point of the stream, and freed by free_in() at that
  /// point of its stream.
  virtual void* allocate_in(std::size_t bytes, void* stream) = 0;
  virtual void* allocate_zeros(std::size_t bytes, void* stream) = 0;
  virtual void free_in(void* memory, void* stream) noexcept = 0;

  /// Whether this build has the kernels of compression. The next three only enqueue.
  virtual bool has_codecs() const { return false; }
  /// Encodes elements. With a residual (error feedback): the elements plus the residual, which becomes what was lost.
  virtual void encode(const DeviceFrame& /*frame*/, const void* /*elements*/, float* /*residual*/, void* /*stream*/) {
    no_codecs();
  }
  virtual void decode(const DeviceFrame& /*frame*/, void* /*elements*/, void* /*stream*/) { no_codecs(); }
  /// Combines in rank order, in f32.
  virtual void combine(const DeviceReduction& /*reduction*/, void* /*stream*/) { no_codecs(); }

  /// For programs such as tests and benchmarks, which have no CUDA of their own.
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void free(void* memory) noexcept = 0;
  /// Copies and waits; ordered after all work of the legacy default stream.
  virtual void copy_now(void* to, const void* from, std::size_t bytes) = 0;

 private:
  [[noreturn]] static void no_codecs() {
    throw Error(ErrorKind::unavailable, "Medley's CUDA part was built without kernels of compression");
  }
};

/// The shared object exports extern "C" const DevicePlugin* medley_device(). `abi` stays the first member.
struct DevicePlugin {
  std::string_view abi;
  std::unique_ptr<Device> (*open)(int device);  ///< throws Error(unavailable) with the reason
  int (*count)();                               ///< devices of this machine; throws Error(unavailable) with the reason
};

/// Whether CUDA devices can be expected here, without touching CUDA: the shared object is next to the
/// backends and the driver's control file exists. MEDLEY_CUDA=0 means no; MEDLEY_CUDA=1 skips the second check.
/// Empty if so, otherwise the reason.
MEDLEY_API std::string why_no_device();

/// Loads the shared object and opens a device. Throws Error(unavailable) with the reason.
MEDLEY_API std::unique_ptr<Device> open_device(int index);
/// Loads the shared object and counts the devices, at least one. Throws Error(unavailable) with the reason.
MEDLEY_API int device_count();

}  // namespace medley
