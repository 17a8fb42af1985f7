// Wraps a library that has only blocking calls in a lane: worker threads make the calls, the engine polls an
// atomic. A backend derives from BlockingLibrary and returns a BlockingLane around it from connect().
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <medley/backend.hpp>
#include <medley/export.hpp>

namespace medley {

/// What a backend with blocking calls must implement.
class BlockingLibrary {
 public:
  virtual ~BlockingLibrary() = default;
  /// Performs one operation and returns on completion: for a receive the rank of the sender, else any value.
  /// Throws when it fails; waits until `deadline` at most. Everything that `call` points to stays valid
  /// meanwhile. Collectives run one at a time, in lane order. Sends and receives with different peers or
  /// tags run concurrently, each on its own thread, since a blocking send may wait for a receive that the
  /// peer posts later; those of one peer, direction and tag run in order. A library without native sends
  /// and receives is called by one thread only.
  virtual int perform(const Call& call, Deadline deadline) = 0;
  /// Makes every running and later perform() throw soon, and starts to notify the peers if it can. Called
  /// once, from another thread: must not wait.
  virtual void stop(const Error& why) noexcept = 0;
  /// After stop(), called until it returns true: every peer that can be reached has been notified. Called from the
  /// engine's thread, also for a library that was not stopped: must not wait.
  virtual bool poll_stop() noexcept { return true; }
  /// Throws when a peer is known to be dead. Called from the engine's thread: must not wait.
  virtual void check() {}
};

/// Nothing here waits for the library: abort and close are polled, for a second at most. A perform() that has not
/// returned by then stays with its thread, which keeps the library alive and may still write user memory.
class MEDLEY_API BlockingLane final : public Lane {
 public:
  /// `timeout`: how long one operation may run; callers with shorter deadlines end it by abort().
  /// `ring`: called by a worker when an operation completes, for a backend whose waiters sleep.
  BlockingLane(std::shared_ptr<BlockingLibrary> library, int ranks, std::chrono::nanoseconds timeout,
               std::function<void()> ring = {});
  ~BlockingLane() override;

  Transfer* start(const Call& call) override;
  bool concurrent_collectives() const override { return true; }  // they queue in order
  void check() override;
  void abort(const Error& why) noexcept override;
  bool poll_abort() noexcept override;
  bool poll_close() noexcept override;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace medley
