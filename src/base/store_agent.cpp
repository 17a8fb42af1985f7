#include <medley/sdk/store_agent.hpp>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

#include <medley/sdk/fork_guard.hpp>
#include <medley/sdk/may_block.hpp>
#include <medley/sdk/quiet_thread.hpp>

namespace medley {

struct StoreAgent::State {
  struct Task {
    std::function<std::optional<std::string>()> access;
    std::shared_ptr<Ticket> ticket;
  };
  std::mutex mutex;  // held for no longer than a push or a pop
  std::condition_variable changed;
  std::deque<Task> tasks;
  bool running = false;  // a thread exists; it ends when nothing is left to do
  ForkGuard fork_guard;

  static void work(const std::shared_ptr<State>& state);
};

StoreAgent::StoreAgent() : state_(std::make_shared<State>()) {}

void StoreAgent::State::work(const std::shared_ptr<State>& state) {
  using namespace std::chrono_literals;
  std::unique_lock lock(state->mutex);
  // Accesses come in bursts: the thread lingers for the next one.
  while (!state->tasks.empty() || state->changed.wait_for(lock, 1s, [&] { return !state->tasks.empty(); })) {
    Task task = std::move(state->tasks.front());
    lock.unlock();
    std::optional<std::string> value;
    try {
      value = task.access();
    } catch (const std::exception&) {  // the store's server may have left
    }
    task.ticket->value_ = std::move(value);
    task.ticket->done_.store(true, std::memory_order_release);  // pairs with Ticket::done()
    task = {};
    lock.lock();
    state->tasks.pop_front();  // only now: the destructor waits for an empty queue
    state->changed.notify_all();
  }
  state->running = false;
  state->changed.notify_all();
}

StoreAgent::TicketRef StoreAgent::post(std::function<std::optional<std::string>()> access) {
  auto ticket = std::make_shared<Ticket>();
  const std::lock_guard lock(state_->mutex);
  state_->tasks.push_back({std::move(access), ticket});
  if (!state_->running) {
    start_quiet_thread("medley-agent", [state = state_] { State::work(state); }).detach();
    state_->running = true;
  }
  state_->changed.notify_all();
  return ticket;
}

StoreAgent::TicketRef StoreAgent::set(std::shared_ptr<Store> store, std::string key, std::string value) {
  return post(
      [store = std::move(store), key = std::move(key), value = std::move(value)]() -> std::optional<std::string> {
        store->set(key, value);
        return std::nullopt;
      });
}

StoreAgent::TicketRef StoreAgent::try_get(std::shared_ptr<Store> store, std::string key) {
  return post([store = std::move(store), key = std::move(key)] { return store->try_get(key); });
}

StoreAgent::~StoreAgent() {
  using namespace std::chrono_literals;
  if (!state_->fork_guard.here()) {  // a forked child has no thread, and the lock may be held for ever
    static_cast<void>(new std::shared_ptr<State>(std::move(state_)));
    return;
  }
  may_block("the store");
  std::unique_lock lock(state_->mutex);
  state_->changed.wait_for(lock, 2s, [this] { return state_->tasks.empty(); });
}

}  // namespace medley
