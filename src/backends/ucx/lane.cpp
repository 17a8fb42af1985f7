#include "backends/ucx/lane.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <medley/sdk/peer_abort.hpp>

#include "backends/ucx/tag.hpp"

namespace medley::ucx {
namespace {

using namespace std::chrono_literals;

// Data that is already arriving is complete within this unless its sender has stopped. With the 400 ms in which ranks
// are asked for their status, a timeout is reported within a second of its deadline.
constexpr auto longest_arrival = 250ms;
constexpr auto longest_endpoint_close = 200ms;
// What was sent leaves at once where its receiver polls.
constexpr auto longest_leaving = 50ms;
// A rank that aborts notifies the others before it exits, so its notice has arrived when its connection breaks.
constexpr auto longest_notice = 20ms;
// For the store to answer whether a rank whose connection broke has left in order. An unreachable store does not
// answer.
constexpr auto longest_answer = 1s;
// Whether an awaited rank has left is queried from the store in one of this many checks, some 200 ms.
constexpr std::uint64_t checks_per_question = 10;

// A cell of UCX's shared-memory FIFO (128 bytes) without the headers of UCT and UCP.
constexpr std::size_t bytes_of_cell = 92;

std::string left_key(int rank) { return fmt::format("left/{}", rank); }

/// For the oldest comm numbers, on the agent's thread: whether all ranks have left, so that the number may be reused.
std::optional<std::string> all_left(Store& store, int own, int size) {
  for (int r = 0; r < size; ++r) {
    if (r != own && !store.try_get(left_key(r))) return std::nullopt;
  }
  // The last rank to see it clears the entry, or many comms would fill the table.
  if (store.add("seen", 1) == size) store.erase_prefix("");
  return "yes";
}

}  // namespace

UcxLane::UcxLane(const CommParams& params, Worker& worker, Peers& peers, CommIds& ids, StoreAgent& store_agent)
    : worker_(worker),
      peers_(peers),
      ids_(ids),
      store_agent_(store_agent),
      store_(params.store),
      rank_(params.rank),
      world_ranks_(params.world_ranks),
      id_(ids.take()),
      fates_(params.world_ranks.size(), Fate::none),
      questions_(params.world_ranks.size()) {
  worker_.route(id_, this);  // a member may abort as soon as it knows the number
  try {
    introduce(params);
  } catch (...) {
    worker_.route(id_, nullptr);  // the number cannot be reused: members may have received it
    throw;
  }
}

void UcxLane::introduce(const CommParams& params) {
  // The first comm of a context has all ranks, so their addresses are exchanged with it.
  const bool first = !peers_.introduced();
  std::vector<std::string> all = params.all_gather(fmt::format("{} {}", id_, first ? peers_.introduction() : ""));
  for (std::string& text : all) {
    const std::size_t space = text.find(' ');
    their_ids_.push_back(static_cast<std::uint16_t>(std::stoul(text.substr(0, space))));
    text.erase(0, space + 1);
  }
  if (first) peers_.introduce(all);
}

Transfer* UcxLane::start(const Call& call) {
  throw_if_given_up();
  MessagePool& pool = worker_.messages();
  Message* message = pool.take();
  try {
    if (call.op == Op::recv) {
      const bool any = call.root < 0;
      message->recv(*this, call, make_tag(id_, any ? 0 : call.root, call.tag), any ? any_source_mask : whole_mask);
      return message;
    }
    Endpoint& endpoint = peers_.endpoint(peer(call.root));
    if (endpoint.failed()) {
      throw Error(ErrorKind::rank_lost, fmt::format("the connection to rank {} is broken", call.root),
                  {.ranks = {call.root}});
    }
    const auto to = their_ids_[static_cast<std::size_t>(call.root)];
    if (message->send(*this, endpoint.handle(), call, make_tag(to, rank_, call.tag))) return message;
    if (worker_.may_linger(message->bytes())) peers_.touched(endpoint);
  } catch (...) {
    pool.give(message);
    throw;
  }
  pool.give(message);
  return nullptr;
}

/// UCX copies what fits into a cell of its shared memory at once, unless that is full or earlier messages wait.
bool UcxLane::send_now(int to, int tag, const void* data, std::size_t bytes) {
  if (bytes > bytes_of_cell || worker_.may_linger(bytes) || given_up_ || worker_.stopped()) return false;
  Endpoint* const endpoint = peer(to).endpoint.get();
  if (!endpoint || endpoint->failed()) return false;
  ucp_request_param_t param;
  param.op_attr_mask = UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  param.memory_type = UCS_MEMORY_TYPE_HOST;
  const ucp_tag_t tagged = make_tag(their_ids_[static_cast<std::size_t>(to)], rank_, tag);
  return ucp_tag_send_nbx(endpoint->handle(), data, bytes, tagged, &param) == nullptr;
}

void UcxLane::answered(int rank) noexcept {
  Peer& from = peer(rank);
  try {
    if (from.endpoint || !from.dead()) peers_.touched(peers_.endpoint(from));
  } catch (const Error&) {  // it is unreachable, so nothing more can be delivered to it
  }
}

/// Queries the store without waiting for it; nothing while the answer is pending.
std::optional<bool> UcxLane::ask_whether_left(int rank) {
  Question& question = questions_[static_cast<std::size_t>(rank)];
  const Deadline now = std::chrono::steady_clock::now();
  if (!question.answer) {
    question.answer = store_agent_.try_get(store_, left_key(rank));
    question.limit = now + longest_answer;
  }
  if (!question.answer->done() && now < question.limit) return std::nullopt;
  const bool yes = question.answer->done() && question.answer->value().has_value();
  question.answer.reset();
  if (yes) fates_[static_cast<std::size_t>(rank)] = Fate::left;
  return yes;
}

bool UcxLane::awaits(int rank) const {
  const auto& list = in_flight_.list();
  return std::any_of(list.begin(), list.end(), [rank](const Message* m) { return m->peer() == rank; });
}

void UcxLane::look_at(int rank, bool ask_store) {
  Fate& fate = fates_[static_cast<std::size_t>(rank)];
  const Peer& one = peer(rank);
  if (fate == Fate::none) {
    const bool dead = one.dead();
    const bool broken = one.endpoint && one.endpoint->failed();
    // A rank announces that it leaves before it exits, so the answer to a later query cannot mistake an orderly exit
    // for a loss.
    Question& question = questions_[static_cast<std::size_t>(rank)];
    if (dead || broken) {
      if (!question.after_end) question = {.after_end = true};
      if (ask_whether_left(rank) == false) fate = Fate::lost;
    } else if (question.answer || (ask_store && awaits(rank))) {
      ask_whether_left(rank);
    }
  }
  if (fate == Fate::lost) {
    throw Error(ErrorKind::rank_lost,
                one.dead() ? fmt::format("rank {} (process {}) died", rank, one.process)
                           : fmt::format("the connection to rank {} broke", rank),
                {.ranks = {rank}});
  }
}

void UcxLane::check() {
  const bool ask_store = ++checks_ % checks_per_question == 0;
  const int size = static_cast<int>(world_ranks_.size());
  // The root cause first: a rank that has noticed a death aborts the comm, and one that got an error may leave.
  for (int r = 0; r < size; ++r) {
    if (r != rank_) look_at(r, ask_store);
  }
  throw_if_given_up();
  for (int r = 0; r < size; ++r) {
    if (fates_[static_cast<std::size_t>(r)] != Fate::left || !awaits(r)) continue;
    throw peer_left(r);
  }
}

bool UcxLane::looked_for_cause(Deadline& since) {
  const Deadline now = std::chrono::steady_clock::now();
  if (since == Deadline{}) since = now;
  if (!given_up_ && now - since < longest_notice) return false;
  check();
  return true;
}

void UcxLane::given_up(const Notice& notice) {
  if (!given_up_) given_up_ = notice.why;
  wake_all();
}

void UcxLane::wake_all() {
  for (Message* message : in_flight_.list()) message->wake();
}

/// Closes the endpoints that receives arrive on, which makes UCX return them. Returns whether there were any.
bool UcxLane::close_endpoints_of_receives() noexcept {
  bool closing = false;
  for (const Message* message : in_flight_.list()) {
    if (!message->receive() || message->peer() < 0) continue;
    Endpoint* endpoint = peer(message->peer()).endpoint.get();
    if (!endpoint || !endpoint->watched()) continue;
    endpoint->close();
    closing = true;
  }
  return closing;
}

/// The only sure way to keep UCX from writing into memory that it does not return.
void UcxLane::stop_worker() noexcept {
  const Error why = given_up_.value_or(Error(ErrorKind::aborted, "a receive was given up while its data was arriving"));
  worker_.stop(Error(why.kind(),
                     fmt::format("ucx was stopped in this context, since a message that was given up is "
                                 "still arriving: {}",
                                 why.what()),
                     why.context()));
  abort_step_ = AbortStep::none;
}

/// One failed receive of a comm that continues: UCX has returned it already, or returns it at once, unless its data is
/// arriving.
void UcxLane::withdraw(Message& message) noexcept {
  message.cancel(worker_.handle());
  const auto& list = in_flight_.list();
  const auto returned = [&] { return std::find(list.begin(), list.end(), &message) == list.end(); };
  if (!returned()) worker_.poll();
  if (!returned() && !worker_.stopped()) stop_worker();
}

void UcxLane::abort(const Error& why) noexcept {
  const bool first = !given_up_;
  if (first) given_up_ = why;
  for (int r : why.context().ranks) {
    if (r >= 0 && r < static_cast<int>(world_ranks_.size())) peer(r).given_up = true;
  }
  try {
    for (int r = 0; first && r < static_cast<int>(world_ranks_.size()); ++r) {
      if (r == rank_ || peer(r).dead()) continue;
      Endpoint& endpoint = peers_.endpoint(peer(r));
      endpoint.tell(Notice{their_ids_[static_cast<std::size_t>(r)], rank_, why}.pack());
      peers_.touched(endpoint);
    }
  } catch (const std::exception&) {  // a peer that cannot be notified finds out by its deadline
  }
  const std::vector<Message*> pending = in_flight_.list();
  for (Message* message : pending) {
    message->forget_owner();  // the engine polls none of them any more
    if (message->receive()) message->cancel(worker_.handle());
  }
  abort_step_ = AbortStep::receives;
  abort_limit_ = deadline_after(longest_arrival);
}

/// Drops messages that arrived and were not received, which releases their senders' memory; the peers do the same.
void UcxLane::leave_after_abort() noexcept {
  worker_.drop_messages(make_tag(id_, 0, 0), comm_mask);
  abort_step_ = AbortStep::leaving;
  abort_limit_ = deadline_after(longest_leaving);
}

/// Ends with no receive of this lane in UCX, or with a worker that is never polled again.
bool UcxLane::poll_abort() noexcept {
  if (worker_.stopped()) abort_step_ = AbortStep::none;
  if (abort_step_ == AbortStep::none) return true;
  worker_.poll();
  const bool late = std::chrono::steady_clock::now() > abort_limit_;
  if (abort_step_ == AbortStep::leaving) {
    if ((in_flight_.list().empty() && peers_.flushed()) || late) abort_step_ = AbortStep::none;
  } else if (in_flight_.receives() == 0) {
    leave_after_abort();
  } else if (late && abort_step_ == AbortStep::receives && close_endpoints_of_receives()) {
    abort_step_ = AbortStep::endpoints;
    abort_limit_ = deadline_after(longest_endpoint_close);
  } else if (late) {
    stop_worker();
  }
  return abort_step_ == AbortStep::none;
}

bool UcxLane::poll_close() noexcept {
  const Deadline now = std::chrono::steady_clock::now();
  if (close_limit_ == Deadline{}) close_limit_ = now + longest_leaving;
  if (!left_ && !peers_.flushed() && !worker_.stopped() && now < close_limit_) {
    worker_.poll();
    return false;
  }
  if (!left_) {
    left_ = store_agent_.set(store_, left_key(rank_), "1");
    close_limit_ = now + longest_answer;
  }
  return left_->done() || now >= close_limit_;
}

UcxLane::~UcxLane() {
  worker_.route(id_, nullptr);
  if (!left_) left_ = store_agent_.set(store_, left_key(rank_), "1");
  ids_.retire(id_, [&agent = store_agent_, store = store_, own = rank_, size = static_cast<int>(world_ranks_.size()),
                    answer = StoreAgent::TicketRef()]() mutable {
    if (!answer) answer = agent.post([store, own, size] { return all_left(*store, own, size); });
    if (!answer->done()) return false;
    const bool yes = answer->value().has_value();
    answer.reset();
    return yes;
  });
  ids_.reclaim([this](std::uint16_t id) { worker_.drop_messages(make_tag(id, 0, 0), comm_mask); });
}

}  // namespace medley::ucx
