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

/// Copies refer to the same operation. Destroying the last copy does not cancel the operation: its buffers must live
/// until it is complete.
class MEDLEY_API Work {
 public:
  Work() noexcept = default;                                                     ///< of an operation that is complete
  explicit Work(core::Operation* operation) noexcept : operation_(operation) {}  ///< takes over one reference
  Work(const Work& other) noexcept;
  Work(Work&& other) noexcept : operation_(std::exchange(other.operation_, nullptr)), source_(other.source_) {}
  Work& operator=(Work other) noexcept {
    std::swap(operation_, other.operation_);
    source_ = other.source_;
    return *this;
  }
  ~Work() {
    if (operation_) drop();
  }

  /// Waits until the operation is complete, and drives every other pending operation meanwhile. Throws its error.
  ///
  /// - With a deadline: throws Error(timeout) once it has passed. The operation's comm cannot be used after that.
  /// - On CUDA memory: makes the operation's stream wait for it. The host waits until that wait can be enqueued. Over
  ///   nccl that is at once, unless operations are pending that the host must drive; over other backends, when the copy
  ///   of the result to the device is enqueued. Later failures are reported by wait_host(), test(), error() and the
  ///   comm's next call.
  void wait();
  void wait(std::chrono::nanoseconds deadline);

  /// The same, but on CUDA memory, too, the host waits until the operation is complete.
  void wait_host();
  void wait_host(std::chrono::nanoseconds deadline);

  /// On CUDA memory: makes this stream (cudaStream_t) wait for it, whichever stream it was issued in. The host waits at
  /// most `at_most` until that is possible; returns whether it was. Throws its error. On host memory: wait_for().
  bool wait_in(void* stream, std::chrono::nanoseconds at_most);

  /// Waits on the host for at most this long; returns whether it is complete. If not, the operation continues. Throws
  /// its error.
  bool wait_for(std::chrono::nanoseconds at_most);

  /// For recordings. Says that the program may wait for it by other means than this Work, such as a future of another
  /// library: how long it waits is unknown from here on, until it waits on this Work or awaited_since() tells.
  void awaited_elsewhere() noexcept;
  /// For recordings. Says that the program waited for it from this moment on, by other means, until it was complete; not at
  /// all if it was complete by then. Without effect on one that is not complete.
  void awaited_since(std::chrono::steady_clock::time_point moment) noexcept;

  /// Runs the callback on completion, with or without an error: at once if already complete, else on the thread that
  /// detects completion, which may be the context's own or any inside a Medley call. No lock is held, so the callback
  /// may issue operations; it must not throw, and should not take long.
  void on_complete(std::function<void()> callback);

  /// Whether it is complete. Drives pending operations, never blocks, throws the operation's error.
  bool test();

  /// Whether it is complete, with or without an error. Drives nothing: a loop over it alone may never end.
  bool complete() const noexcept;

  /// The error it ended with, or null; does not throw and does not wait. Valid as long as this Work.
  const Error* error() const noexcept;

  /// Of a complete receive: the rank that sent the message. -1 for other operations.
  int source() const noexcept;

 private:
  friend class Comm;
  void drop() noexcept;
  core::Operation* operation_ = nullptr;
  int source_ = -1;
};

}  // namespace medley
