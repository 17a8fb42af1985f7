// The handle of an issued operation. A blocking call returns one that is already complete.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include <medley/error.hpp>
#include <medley/export.hpp>

namespace medley {

namespace core {
class Operation;
}

/// Copies share one operation. Dropping the last copy does not cancel it; its buffers must outlive its completion.
class MEDLEY_API Work {
 public:
  Work() noexcept = default;                       ///< a complete one
  explicit Work(core::Operation* operation) noexcept : operation_(operation) {}   ///< takes over one reference
  Work(const Work& other) noexcept;
  Work(Work&& other) noexcept : operation_(std::exchange(other.operation_, nullptr)), source_(other.source_) {}
  Work& operator=(Work other) noexcept {
    std::swap(operation_, other.operation_);
    source_ = other.source_;
    return *this;
  }
  ~Work();

  /// Waits until the operation is complete, driving every other pending operation meanwhile. Throws its error.
  /// With a deadline: throws Error(timeout) once it has passed; the operation's comm is then no longer usable.
  /// On CUDA memory: makes the stream that the operation was given wait for it, and the host only until that is
  /// possible: not at all over nccl; over other backends, until the result is on its way to the device. What goes wrong
  /// afterwards shows in wait_host(), test(), error() and the comm's next call.
  void wait();
  void wait(std::chrono::nanoseconds deadline);

  /// The same, and on CUDA memory too the host waits until it is complete.
  void wait_host();
  void wait_host(std::chrono::nanoseconds deadline);

  /// On CUDA memory: makes this stream (cudaStream_t) wait for it, whichever stream it was issued in, and the host at most
  /// that long until it is possible; says whether it was. Throws its error. On host memory: wait_for().
  bool wait_in(void* stream, std::chrono::nanoseconds at_most);

  /// Waits, on the host, at most that long and says whether it is complete; the operation goes on if not. Throws its error.
  bool wait_for(std::chrono::nanoseconds at_most);

  /// Calls back once it is complete, with or without an error: at once if it is already, else on the thread that finds
  /// it complete, which may be the context's own or any that is inside a Medley call. No lock is held, so the callback may
  /// issue operations; it must not throw, and should not take long.
  void on_complete(std::function<void()> callback);

  /// Whether it is complete; drives pending operations, never blocks, throws the operation's error.
  bool test();

  /// Whether it is complete, with or without an error; drives nothing.
  bool complete() const noexcept;

  /// The error it ended with, if any; does not throw and does not wait.
  const Error* error() const noexcept;

  /// Of a completed receive: the rank the message came from.
  int source() const noexcept;

 private:
  friend class Comm;
  core::Operation* operation_ = nullptr;
  int source_ = -1;
};

}  // namespace medley
