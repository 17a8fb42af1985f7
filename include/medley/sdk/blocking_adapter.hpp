// Makes a lane of a library that has only blocking calls: worker threads run them, the engine polls an
// atomic. A backend derives from BlockingLibrary and gives a BlockingLane around it from connect().
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <medley/backend.hpp>
#include <medley/export.hpp>

namespace medley {

/// What a backend with blocking calls has to offer.
class BlockingLibrary {
 public:
  virtual ~BlockingLibrary() = default;
  /// Carries out one operation and returns when it is complete: of a receive, the rank of the sender, else
  /// anything. Throws when it fails; waits no longer than until `deadline`. All that `call` points to stays
  /// valid meanwhile. Collectives come one at a time, in lane order. Sends and receives to other peers or
  /// with other tags come at the same time, each on a thread of its own, since a blocking send may wait for a
  /// receive that the peer posts later; those of one peer, direction and tag come in order. A library without
  /// native sends and receives sees one thread.
  virtual int perform(const Call& call, Deadline deadline) = 0;
  /// Makes every running and later perform() end soon, by an exception, and begins to tell the peers if it can. Called
  /// once, from another thread: no waiting here.
  virtual void stop(const Error& why) noexcept = 0;
  /// After stop(), called until it returns true: the peers know, as far as they can be reached. Called from the engine's
  /// thread, also of a library that was not stopped: no waiting here.
  virtual bool poll_stop() noexcept { return true; }
  /// Throws when a peer is known to be dead. Called from the engine's thread: no waiting here.
  virtual void check() {}
};

/// Nothing here waits for the library: abort and close are polled, and no longer than a second. What perform() has not
/// given up by then stays with its thread, which keeps the library alive and may still write user memory.
class MEDLEY_API BlockingLane final : public Lane {
 public:
  /// `timeout`: how long one operation may run; deadlines of callers that are shorter end it by abort().
  /// `ring`: called by a worker when an operation has become complete, for a backend whose waiters sleep.
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
