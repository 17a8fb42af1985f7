// One tagged send or receive in flight, and its pool: no allocation per message in the steady state.
#pragma once

#include <ucp/api/ucp.h>

#include <cstddef>
#include <medley/backend.hpp>
#include <memory>
#include <utility>
#include <vector>

namespace medley::ucx {

class UcxLane;
class MessagePool;

class Message final : public Transfer {
 public:
  Poll poll() override;
  bool poll_when_ready(PollList& list, Polled& owner) override;
  std::vector<int> awaited() const override { return peer_ < 0 ? std::vector<int>{} : std::vector<int>{peer_}; }
  int source() const override { return receive_ ? peer_ : -1; }
  std::int64_t received() const override { return receive_ ? static_cast<std::int64_t>(info_.length) : -1; }
  void release() noexcept override;

  /// Passes it to UCX. False when it is complete already.
  bool send(UcxLane& lane, ucp_ep_h endpoint, const Call& call, ucp_tag_t tag);
  void recv(UcxLane& lane, const Call& call, ucp_tag_t tag, ucp_tag_t mask);

  bool receive() const { return receive_; }
  int peer() const { return peer_; }
  std::size_t bytes() const { return bytes_; }
  /// Asks for a poll, if the engine waits for that.
  void wake() {
    if (owner_) list_->push_back(*std::exchange(owner_, nullptr));
  }
  void forget_owner() { owner_ = nullptr; }
  /// Asks UCX to cancel a receive; it does so at once unless data is already arriving in it.
  void cancel(ucp_worker_h worker) { ucp_request_cancel(worker, request_); }

 private:
  friend class MessagePool;
  friend class InFlight;
  explicit Message(MessagePool& pool) : pool_(pool) {}
  ~Message() override = default;
  void prepare(UcxLane& lane, const Call& call, ucp_request_param_t& param);
  void hold(void* request);
  void finish(ucs_status_t status);
  bool fail();
  bool may_linger() const;
  static void on_sent(void* request, ucs_status_t status, void* self);
  static void on_received(void* request, ucs_status_t status, const ucp_tag_recv_info_t* info, void* self);

  MessagePool& pool_;
  UcxLane* lane_ = nullptr;  ///< null once no operation waits for it
  void* request_ = nullptr;  ///< UCX's, while it is in flight
  bool receive_ = false;
  bool done_ = false;
  ucs_status_t status_ = UCS_OK;
  Deadline failed_at_{};
  int peer_ = -1;  ///< rank in the comm; for a receive from any source -1 until it is complete
  int tag_ = 0;
  std::size_t bytes_ = 0;  ///< bytes sent, or the capacity of a receive
  ucp_tag_recv_info_t info_{};
  std::size_t place_ = 0;  ///< index in its lane's list
  PollList* list_ = nullptr;
  Polled* owner_ = nullptr;  ///< to poll it once it is complete
};

class MessagePool {
 public:
  ~MessagePool();
  Message* take();
  void give(Message* message) { free_.push_back(message); }

 private:
  std::vector<Message*> all_, free_;
};

/// The messages of a lane that UCX has not returned.
class InFlight {
 public:
  void add(Message* message) {
    message->place_ = list_.size();
    list_.push_back(message);
    receives_ += message->receive_;
  }
  void remove(Message* message) {
    list_[message->place_] = list_.back();
    list_[message->place_]->place_ = message->place_;
    list_.pop_back();
    receives_ -= message->receive_;
  }
  const std::vector<Message*>& list() const { return list_; }
  int receives() const { return receives_; }

 private:
  std::vector<Message*> list_;
  int receives_ = 0;
};

}  // namespace medley::ucx
