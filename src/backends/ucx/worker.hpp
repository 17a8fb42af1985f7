// UCX in one context: its UCP context and worker, polled once per pass of the engine whatever the number of comms. The
// engine's lock serialises all calls; functions that connect() may call outside of it say so.
#pragma once

#include <ucp/api/ucp.h>

#include <chrono>
#include <cstdint>
#include <medley/backend.hpp>
#include <medley/sdk/may_block.hpp>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "backends/ucx/event_count.hpp"
#include "backends/ucx/message.hpp"

namespace medley::ucx {

class UcxLane;

class Worker {
 public:
  explicit Worker(const BackendParams& params);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  ucp_worker_h handle() const { return worker_; }
  /// The address by which others reach this worker.
  const std::string& address() const { return address_; }
  WorkerEventCount& event_count() { return event_count_; }
  MessagePool& messages() { return messages_; }
  /// Whether a message that is complete here may still need polls to reach its peer, or its sender to be answered.
  bool may_linger(std::size_t bytes) const { return bytes >= copied_below_; }

  /// One pass of the engine calls this once per busy lane. A lane that has not `seen` the last poll counts it as its
  /// own, so that only the first of a pass polls.
  void progress(std::uint64_t& seen) {
    if (seen == polls_) poll();
    seen = polls_;
  }
  void poll();
  /// Polls until `done` or for this long; returns whether it is done.
  template <class Done>
  bool poll_until(Done done, std::chrono::milliseconds at_most) {
    may_block("UCX to finish");
    const Deadline until = std::chrono::steady_clock::now() + at_most;
    while (!done()) {
      if (stopped_ || std::chrono::steady_clock::now() > until) return false;
      poll();
    }
    return true;
  }
  /// Whether anything moved since the last call.
  bool take_moved() { return std::exchange(moved_, false); }

  /// Sets who gets the notices for a number; null: nobody. From any thread.
  void route(std::uint16_t comm, UcxLane* lane);

  /// Drops messages that have arrived and were not received.
  void drop_messages(ucp_tag_t tag, ucp_tag_t mask);

  /// Never polls again: the only sure way to keep UCX from writing into memory that it holds and does not return.
  void stop(const Error& why);
  const std::optional<Error>& stopped() const { return stopped_; }
  /// It is not destroyed but kept until the process ends.
  void leave() { left_ = true; }

 private:
  static ucs_status_t on_notice(void* self, const void* header, std::size_t header_bytes, void*, std::size_t,
                                const ucp_am_recv_param_t*) noexcept;
  void make_worker();

  std::size_t copied_below_ = 0;
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  std::string address_;
  std::uint64_t polls_ = 0;
  bool moved_ = false;
  bool left_ = false;
  std::optional<Error> stopped_;
  MessagePool messages_;
  WorkerEventCount event_count_;
  std::mutex routes_mutex_;
  std::unordered_map<std::uint16_t, UcxLane*> routes_;
};

}  // namespace medley::ucx
