// Store accesses on a separate thread, for backends: they must not make a round trip to the store under the engine's
// lock. Each access immediately returns a ticket, which the backend polls. One agent per backend and context.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <medley/export.hpp>
#include <medley/store.hpp>
#include <memory>
#include <optional>
#include <string>

namespace medley {

class MEDLEY_API StoreAgent {
 public:
  /// The result of an access.
  class Ticket {
   public:
    // Pairs with the release store in the agent's thread
    bool done() const { return done_.load(std::memory_order_acquire); }
    /// Once done: the value, or none where the key is absent or the store could not be reached.
    const std::optional<std::string>& value() const { return value_; }

   private:
    friend class StoreAgent;
    std::optional<std::string> value_;
    std::atomic<bool> done_{false};
  };
  using TicketRef = std::shared_ptr<const Ticket>;

  StoreAgent();
  /// Waits for posted accesses, but at most two seconds: a store that does not answer blocks only its own thread.
  ~StoreAgent();
  StoreAgent(const StoreAgent&) = delete;
  StoreAgent& operator=(const StoreAgent&) = delete;

  TicketRef set(std::shared_ptr<Store> store, std::string key, std::string value);
  TicketRef try_get(std::shared_ptr<Store> store, std::string key);
  /// Any access; its return value becomes the ticket's value. An exception counts as no value.
  TicketRef post(std::function<std::optional<std::string>()> access);

 private:
  struct State;
  /// Shared with the thread, which may be inside the store when the agent is destroyed
  std::shared_ptr<State> state_;
};

}  // namespace medley
