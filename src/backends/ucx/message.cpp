#include "backends/ucx/message.hpp"

#include <fmt/format.h>

#include <medley/sdk/grow.hpp>

#include "backends/ucx/lane.hpp"
#include "backends/ucx/status.hpp"
#include "backends/ucx/tag.hpp"

namespace medley::ucx {
namespace {

/// The status of a call that returns either a request or a status.
ucs_status_t status_now(ucs_status_ptr_t result) { return UCS_PTR_RAW_STATUS(result); }

}  // namespace

void Message::prepare(UcxLane& lane, const Call& call, ucp_request_param_t& param) {
  lane_ = &lane;
  request_ = nullptr;
  receive_ = call.op == Op::recv;
  done_ = false;
  peer_ = call.root;
  tag_ = call.tag;
  failed_at_ = {};
  bytes_ = static_cast<std::size_t>(receive_ ? call.out_count : call.in_count) * size_of(call.dtype);
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  param.user_data = this;
  param.memory_type = UCS_MEMORY_TYPE_HOST;  // saves UCX a lookup for every address
}

bool Message::send(UcxLane& lane, ucp_ep_h endpoint, const Call& call, ucp_tag_t tag) {
  ucp_request_param_t param;
  prepare(lane, call, param);
  param.cb.send = on_sent;
  const ucs_status_ptr_t result = ucp_tag_send_nbx(endpoint, call.in, bytes_, tag, &param);
  if (!UCS_PTR_IS_PTR(result)) {
    if (result != nullptr) throw error_of(status_now(result), peer_);
    return false;
  }
  hold(result);
  return true;
}

/// A request may be complete before the call that makes it returns: then it belongs to UCX again.
void Message::hold(void* request) {
  if (done_) return;
  request_ = request;
  lane_->in_flight().add(this);
}

void Message::recv(UcxLane& lane, const Call& call, ucp_tag_t tag, ucp_tag_t mask) {
  ucp_request_param_t param;
  prepare(lane, call, param);
  // UCX 1.13 reports the sender of a message that has already arrived only through the callback.
  param.op_attr_mask |= UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
  param.cb.recv = on_received;
  const ucs_status_ptr_t result = ucp_tag_recv_nbx(lane.worker().handle(), call.out, bytes_, tag, mask, &param);
  if (!UCS_PTR_IS_PTR(result)) return finish(status_now(result));
  hold(result);
}

void Message::on_sent(void* request, ucs_status_t status, void* self) {
  // The receiver's buffer was too small: it gets the error, its sender continues.
  static_cast<Message*>(self)->finish(status == UCS_ERR_MESSAGE_TRUNCATED ? UCS_OK : status);
  ucp_request_free(request);
}

void Message::on_received(void* request, ucs_status_t status, const ucp_tag_recv_info_t* info, void* self) {
  auto* message = static_cast<Message*>(self);
  message->info_ = *info;
  message->finish(status);
  ucp_request_free(request);
}

void Message::finish(ucs_status_t status) {
  status_ = status;
  done_ = true;
  if (request_ && lane_) lane_->in_flight().remove(this);
  request_ = nullptr;
  if (!lane_) return pool_.give(this);
  if (receive_ && (status == UCS_OK || status == UCS_ERR_MESSAGE_TRUNCATED)) peer_ = source_of(info_.sender_tag);
  if (!owner_) return;
  owner_->done = status == UCS_OK && !may_linger();
  wake();
}

bool Message::may_linger() const { return lane_->worker().may_linger(receive_ ? info_.length : bytes_); }

/// A message that may take many passes is polled in each, which tells the engine whether something moved.
bool Message::poll_when_ready(PollList& list, Polled& owner) {
  if (done_ || lane_->worker().may_linger(bytes_)) return false;
  list_ = &list;
  owner_ = &owner;
  return true;
}

Poll Message::poll() {
  if (done_) {
    if (status_ != UCS_OK && !fail()) return Poll::waiting;
    if (may_linger()) lane_->answered(peer_);
    return Poll::complete;
  }
  lane_->throw_if_given_up();
  return lane_->worker().take_moved() ? Poll::moved : Poll::waiting;
}

/// Throws; false while the cause is still being determined.
bool Message::fail() {
  if (status_ != UCS_ERR_MESSAGE_TRUNCATED) {
    if (!lane_->looked_for_cause(failed_at_)) return false;
    throw error_of(status_, peer_);
  }
  throw Error(ErrorKind::mismatch,
              fmt::format("rank {} sent {} bytes with tag {} but the receive has room for {}", peer_, info_.length,
                          tag_, bytes_),
              {.ranks = {peer_}});
}

void Message::release() noexcept {
  forget_owner();
  if (request_ && receive_) lane_->withdraw(*this);
  if (!request_) return pool_.give(this);
  // A send that UCX cannot return, or a receive of a stopped worker: no operation waits for it any more.
  lane_->in_flight().remove(this);
  lane_ = nullptr;
}

Message* MessagePool::take() {
  if (free_.empty()) {
    make_room_for_one(all_);
    free_.reserve(all_.capacity());  // give() must not fail
    all_.push_back(new Message(*this));
    return all_.back();
  }
  Message* message = free_.back();
  free_.pop_back();
  return message;
}

MessagePool::~MessagePool() {
  for (Message* message : all_) delete message;
}

}  // namespace medley::ucx
