#include "backends/ucx/lane.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "backends/ucx/tag.hpp"

namespace medley::ucx {
namespace {

using namespace std::chrono_literals;

// Data that is already arriving comes to its end within this unless its sender has stopped. With the 400 ms in which
// ranks are asked where they are, a timeout is told within a second of its deadline.
constexpr auto patience_with_arrivals = 250ms;
constexpr auto patience_with_closing = 200ms;
// What was sent leaves at once where its receiver polls.
constexpr auto patience_with_leaving = 50ms;
// A rank that gives up tells the others before it goes, so its notice is there when its connection breaks.
constexpr auto patience_with_notices = 20ms;
// Whether an awaited rank has left is asked of the store in one of this many checks, some 200 ms.
constexpr std::uint64_t checks_per_question = 10;

std::string left_key(int rank) {
  return fmt::format("left/{}", rank);
}

bool left(Store& store, int rank) {
  try {
    return store.try_get(left_key(rank)).has_value();
  } catch (const std::exception&) {
    return false;  // the store may go before the last rank
  }
}

}  // namespace

UcxLane::UcxLane(const Group& group, Worker& worker, Peers& peers, CommIds& ids)
    : worker_(worker),
      peers_(peers),
      ids_(ids),
      store_(group.store),
      rank_(group.rank),
      world_ranks_(group.world_ranks),
      id_(ids.take()),
      fates_(group.world_ranks.size(), Fate::none) {
  worker_.route(id_, this);  // a member may give up as soon as it knows the number
  try {
    introduce(group);
  } catch (...) {
    worker_.route(id_, nullptr);  // the number is lost: members may have heard of it
    throw;
  }
}

void UcxLane::introduce(const Group& group) {
  // The first comm of a context has all ranks; who they are is told along.
  const bool first = !peers_.introduced();
  std::vector<std::string> all = group.all_gather(fmt::format("{} {}", id_, first ? peers_.introduction() : ""));
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
      message->recv(*this, call, make_tag(id_, any ? 0 : call.root, call.tag),
                    any ? any_source_mask : whole_mask);
      return message;
    }
    Endpoint& endpoint = peers_.endpoint(peer(call.root));
    if (endpoint.failed()) {
      throw Error(ErrorKind::rank_lost, fmt::format("the connection to rank {} is broken", call.root),
                  {.ranks = {call.root}});
    }
    const auto to = their_ids_[static_cast<std::size_t>(call.root)];
    if (message->send(*this, endpoint.handle(), call, make_tag(to, rank_, call.tag))) return message;
    peers_.touched(endpoint);
  } catch (...) {
    pool.give(message);
    throw;
  }
  pool.give(message);
  return nullptr;
}

void UcxLane::answered(int rank) noexcept {
  Peer& from = peer(rank);
  try {
    if (from.endpoint || !from.dead()) peers_.touched(peers_.endpoint(from));
  } catch (const Error&) {  // it cannot be reached any more, so nothing is owed to it
  }
}

bool UcxLane::has_left(int rank) {
  Fate& fate = fates_[static_cast<std::size_t>(rank)];
  if (fate == Fate::none && left(*store_, rank)) fate = Fate::left;
  return fate == Fate::left;
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
    // A rank says that it leaves before it goes, so this order cannot mistake an end in order for a loss.
    if (dead || broken) {
      fate = has_left(rank) ? Fate::left : Fate::lost;
    } else if (ask_store && awaits(rank)) {
      has_left(rank);
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
  // The first cause first: a rank that has noticed a death gives up the comm, and one that got an error may
  // leave.
  for (int r = 0; r < size; ++r) {
    if (r != rank_) look_at(r, ask_store);
  }
  throw_if_given_up();
  for (int r = 0; r < size; ++r) {
    if (fates_[static_cast<std::size_t>(r)] != Fate::left || !awaits(r)) continue;
    throw Error(ErrorKind::rank_lost,
                fmt::format("rank {} has left: it destroyed the comm or its context", r), {.ranks = {r}});
  }
}

void UcxLane::throw_first_cause() {
  worker_.poll_until([this] { return given_up_.has_value(); }, patience_with_notices);
  check();
}

void UcxLane::given_up(const Notice& notice) {
  if (!given_up_) given_up_ = notice.why;
}

void UcxLane::withdraw(Message& message) noexcept {
  message.cancel(worker_.handle());
  const auto& list = in_flight_.list();
  const auto returned = [&] { return std::find(list.begin(), list.end(), &message) == list.end(); };
  if (worker_.poll_until(returned, patience_with_arrivals)) return;
  await_receives(Error(ErrorKind::aborted, "a receive was given up while its data was arriving"));
}

/// Ends with no receive of this lane in the hands of UCX, or with a worker that is never polled again.
void UcxLane::await_receives(const Error& why) noexcept {
  const auto returned = [this] { return in_flight_.receives() == 0; };
  if (worker_.poll_until(returned, patience_with_arrivals) || worker_.stopped()) return;
  bool closing = false;
  for (const Message* message : in_flight_.list()) {
    if (!message->receive() || message->peer() < 0) continue;
    Endpoint* endpoint = peer(message->peer()).endpoint.get();
    if (!endpoint || !endpoint->watched()) continue;
    endpoint->close();
    closing = true;
  }
  if (closing && worker_.poll_until(returned, patience_with_closing)) return;
  worker_.stop(Error(why.kind(),
                     fmt::format("ucx was stopped in this context, since a message that was given up is "
                                 "still arriving: {}",
                                 why.what()),
                     why.context()));
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
  } catch (const std::exception&) {  // who cannot be told finds out by its deadline
  }
  const std::vector<Message*> pending = in_flight_.list();
  for (Message* message : pending) {
    if (message->receive()) message->cancel(worker_.handle());
  }
  await_receives(why);
  // What came and was not received is dropped now, which gives its senders their memory back; they do the same.
  if (!worker_.stopped()) worker_.drop_messages(make_tag(id_, 0, 0), comm_mask);
  worker_.poll_until([this] { return in_flight_.list().empty() && peers_.flushed(); }, patience_with_leaving);
}

UcxLane::~UcxLane() {
  worker_.poll_until([this] { return peers_.flushed(); }, patience_with_leaving);
  worker_.route(id_, nullptr);
  try {
    store_->set(left_key(rank_), "1");
  } catch (const std::exception&) {  // whoever serves the store has left before
  }
  ids_.retire(id_, [store = store_, own = rank_, size = static_cast<int>(world_ranks_.size())] {
    for (int r = 0; r < size; ++r) {
      if (r != own && !left(*store, r)) return false;
    }
    try {  // the last to see it clears the table, or many comms would fill it
      if (store->add("seen", 1) == size) store->erase_prefix("");
    } catch (const std::exception&) {  // the store may go before the last rank
    }
    return true;
  });
  ids_.reclaim([this](std::uint16_t id) { worker_.drop_messages(make_tag(id, 0, 0), comm_mask); });
}

}  // namespace medley::ucx
