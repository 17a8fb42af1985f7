// Medley operations on CUDA memory, issued together, and the copies back from staging that follow them in
// streams. Keeps their tensors from the allocator until a stream of the program waits for them, or they
// complete.
#pragma once

#include <c10/core/Event.h>

#include <memory>
#include <mutex>
#include <optional>

#include "work.hpp"

namespace medley::torch {

class Launch {
 public:
  /// `issued`: the stream of issue; `side`: the stream for copies.
  static std::shared_ptr<Launch> make(Held held, c10::Stream issued, c10::Stream side);
  Launch(Held held, c10::Stream issued, c10::Stream side)
      : held_(std::move(held)), issued_(issued), side_(side), copies_(held_.after != nullptr) {}

  /// Makes the stream wait for all operations. The host waits at most that long until that is possible;
  /// returns whether it was. Throws their error.
  bool order(const c10::Stream& stream, std::chrono::nanoseconds at_most);
  /// The same on behalf of the program, which then need not keep the tensors any more.
  bool order_program(const c10::Stream& stream, std::chrono::nanoseconds at_most);
  /// The host waits at most that long; returns whether all are complete. Throws their error.
  bool wait_host(std::chrono::nanoseconds at_most);
  /// The host waits until a deadline, after which the operation has failed.
  void wait_host_until(std::chrono::nanoseconds deadline);
  /// Whether all are complete on the device, with or without an error. Never waits.
  bool complete();
  std::exception_ptr problem() const;
  /// Calls back once, when all operations are complete, with or without an error; immediately if they already
  /// are.
  void when_complete(const std::function<void()>& callback);

  /// The streams that wait for its future are not known.
  void awaited_elsewhere();

  /// Aborts the whole communicator: the other ranks' parts cannot be cancelled alone.
  void abort();

  c10::Stream side() const { return side_; }
  int source() const { return held_.works.empty() ? -1 : held_.works.front().source(); }

 private:
  void end_at_once();
  void settle();
  void copy_back();

  Held held_;
  c10::Stream issued_, side_;
  bool copies_;  ///< streams must wait for copied_
  /// Protects the members below, and held_'s `kept` and `after`; never held during a call of Medley.
  mutable std::mutex mutex_;
  std::optional<c10::Event> copied_;  ///< when all outputs are in place
  std::exception_ptr copy_problem_;
};

}  // namespace medley::torch
