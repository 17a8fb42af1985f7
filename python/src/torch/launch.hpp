// Medley operations on CUDA memory, issued together, and what follows them in streams: copying back what was
// staged. Keeps their tensors from the allocator until a stream of the program waits for them, or they are
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
  /// `issued`: the stream they were issued in; `side`: where copies run.
  static std::shared_ptr<Launch> make(Held held, c10::Stream issued, c10::Stream side);
  Launch(Held held, c10::Stream issued, c10::Stream side)
      : held_(std::move(held)), issued_(issued), side_(side), copies_(held_.after != nullptr) {}

  /// Makes the stream wait for all of it, and the host at most that long until that is possible; says whether
  /// it was. Throws what went wrong.
  bool order(const c10::Stream& stream, std::chrono::nanoseconds at_most);
  /// The same when it is the program that asks: it need not keep the tensors any more.
  bool order_program(const c10::Stream& stream, std::chrono::nanoseconds at_most);
  /// The host waits at most that long; says whether it is complete. Throws what went wrong.
  bool wait_host(std::chrono::nanoseconds at_most);
  /// The host waits until a deadline, after which the operation has failed.
  void wait_host_until(std::chrono::nanoseconds deadline);
  /// Whether it is complete on the device, with or without an error. Never waits.
  bool complete();
  std::exception_ptr problem() const;
  /// Calls back once, when all operations are complete, with or without an error; at once if they are.
  void when_complete(const std::function<void()>& callback);

  /// Ends the whole communicator: the other ranks' parts cannot be taken back alone.
  void abort();

  c10::Stream side() const { return side_; }
  int source() const { return held_.works.empty() ? -1 : held_.works.front().source(); }

 private:
  void end_at_once();
  void settle();
  void copy_back();

  Held held_;
  c10::Stream issued_, side_;
  bool copies_;  ///< streams are to wait for copied_
  /// Of what is below, and of held_'s `kept` and `after`; never held in a call of Medley.
  mutable std::mutex mutex_;
  std::optional<c10::Event> copied_;  ///< when everything is where it belongs
  std::exception_ptr copy_problem_;
};

}  // namespace medley::torch
