// NCCL on one comm: a communicator and a stream for collectives, a channel per peer and direction for messages.
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <medley/backend.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "backends/nccl/channel.hpp"
#include "backends/nccl/deferred_destroy.hpp"
#include "backends/nccl/pairs.hpp"
#include "backends/nccl/track.hpp"

namespace medley::nccl {

class SelfTransfer;

class NcclLane final : public Lane {
 public:
  /// `clock`: set where operations are timed.
  NcclLane(const CommParams& params, StoreAgent& store_agent, int device, std::shared_ptr<cuda::DeviceClock> clock);
  ~NcclLane() override;

  Transfer* start(const Call& call) override;
  bool in_streams() const override { return true; }
  bool takes_lists() const override { return true; }
  void check() override;
  void abort(const Error& why) noexcept override;
  bool poll_abort() noexcept override;

 private:
  friend class StreamTransfer;
  friend class CollectiveTransfer;
  friend class MessageTransfer;
  friend class SelfTransfer;
  void connect();
  bool look_for_abort();
  void explain(const Error& error);
  void await_peers(const char* what, const std::function<bool()>& done);
  Channel& channel(int peer, bool sends);
  Transfer* start_collective(const Call& call);
  Transfer* start_message(const Call& call);
  /// For a captured operation: makes the graph continue in the user's stream after it.
  static void join(const Call& call, Track& track, std::uint64_t number);

  const LaneCount count_;
  CommParams params_;
  StoreAgent& store_agent_;
  int device_;
  std::shared_ptr<cuda::DeviceClock> clock_;
  std::unique_ptr<Communicator> comm_;
  Pairs pairs_;
  std::unique_ptr<Track> track_;
  std::map<std::pair<int, bool>, std::unique_ptr<Channel>> channels_;
  std::unique_ptr<Track> self_track_;
  std::deque<SelfTransfer*> to_self_;  ///< sends and receives without a counterpart, all of one kind per tag
  void* token_ = nullptr;
  bool aborted_ = false;
  std::optional<Error> given_up_;  ///< a peer's reason for aborting the comm
  std::chrono::steady_clock::time_point next_look_{};
  StoreAgent::TicketRef abort_question_;
  Deadline explain_limit_{};  ///< for an NCCL error that the store may explain
};

}  // namespace medley::nccl
