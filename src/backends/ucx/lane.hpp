// Sends and receives of one comm over UCP's tagged messages.
#pragma once

#include <cstdint>
#include <medley/backend.hpp>
#include <medley/sdk/store_agent.hpp>
#include <memory>
#include <optional>
#include <vector>

#include "backends/ucx/comm_ids.hpp"
#include "backends/ucx/message.hpp"
#include "backends/ucx/notice.hpp"
#include "backends/ucx/peers.hpp"
#include "backends/ucx/worker.hpp"

namespace medley::ucx {

class UcxLane final : public Lane {
 public:
  UcxLane(const CommParams& params, Worker& worker, Peers& peers, CommIds& ids, StoreAgent& store_agent);
  ~UcxLane() override;

  Transfer* start(const Call& call) override;
  bool send_now(int to, int tag, const void* data, std::size_t bytes) override;
  void progress() override { worker_.progress(seen_); }
  bool undelivered() const override { return !peers_.flushed_in_a_pause(); }
  void check() override;
  void abort(const Error& why) noexcept override;
  bool poll_abort() noexcept override;
  bool poll_close() noexcept override;

  // Used by its messages.
  Worker& worker() { return worker_; }
  InFlight& in_flight() { return in_flight_; }
  /// A message was received: UCX's acknowledgement to its sender may still need polls to leave.
  void answered(int rank) noexcept;
  /// Takes a receive back from UCX, by whatever means necessary.
  void withdraw(Message& message) noexcept;
  void throw_if_given_up() const {
    if (given_up_) throw *given_up_;
    if (worker_.stopped()) throw *worker_.stopped();
  }
  /// After a message failed, which was noticed at `since`: throws the likely root cause, such as the death of a third
  /// rank that made the peer abort and exit. False while that may still become known.
  bool looked_for_cause(Deadline& since);

  /// Another rank has aborted the comm.
  void given_up(const Notice& notice);
  /// Has the engine poll every message once more, which throws: the comm was given up or the worker stopped.
  void wake_all();

 private:
  /// The known fate of a rank; never revised.
  enum class Fate : std::uint8_t { none, left, lost };

  Peer& peer(int rank) { return peers_.peer(world_ranks_[static_cast<std::size_t>(rank)]); }
  void introduce(const CommParams& params);
  std::optional<bool> ask_whether_left(int rank);
  bool awaits(int rank) const;
  void look_at(int rank, bool ask_store);
  void leave_after_abort() noexcept;
  bool close_endpoints_of_receives() noexcept;
  void stop_worker() noexcept;

  Worker& worker_;
  Peers& peers_;
  CommIds& ids_;
  StoreAgent& store_agent_;
  std::shared_ptr<Store> store_;
  int rank_;
  std::vector<int> world_ranks_;
  std::uint16_t id_;                      ///< this rank's number of the comm
  std::vector<std::uint16_t> their_ids_;  ///< the others', by rank
  std::vector<Fate> fates_;
  struct Question {
    StoreAgent::TicketRef answer{};
    Deadline limit{};
    bool after_end = false;  ///< queried after the rank was known to be gone
  };
  std::vector<Question> questions_;  ///< by rank: whether it has left
  InFlight in_flight_;
  std::uint64_t seen_ = 0;
  std::uint64_t checks_ = 0;
  std::optional<Error> given_up_;

  /// What an abort waits for: receives that UCX returns, receives whose endpoints were closed for that, sent data to
  /// leave.
  enum class AbortStep : std::uint8_t { none, receives, endpoints, leaving };
  AbortStep abort_step_ = AbortStep::none;
  Deadline abort_limit_{};  ///< of this step
  Deadline close_limit_{};
  StoreAgent::TicketRef left_;  ///< pending announcement that this rank has left
};

}  // namespace medley::ucx
