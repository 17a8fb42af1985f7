// The control thread of a rank: heartbeats, death notices, questions and aborts, over sockets of its own. It never calls
// a backend and waits for nobody, so it still speaks when everything else is stuck.
//
// Every rank is linked to those 1, 2, 4, … places after it, so that news reaches all in log2(n) steps and the loss of any
// ranks leaves the rest connected. A rank that leaves says so; one whose process ended or whose link broke without that is
// lost. A forked child closes the sockets it inherited: otherwise it would keep its parent looking alive.
#pragma once

#include <medley/export.hpp>

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "bootstrap/descriptor.hpp"
#include "bootstrap/store.hpp"
#include "control/addresses.hpp"
#include "control/fork_registry.hpp"
#include "control/link.hpp"

namespace medley::control {

/// What the owner does with news; all called on the control thread, none may block.
struct Listener {
  std::function<void(int from, const Message& message)> on_message;
  std::function<void(int rank, const std::string& how)> on_lost;
  std::function<void(int rank)> on_left;
  std::function<void()> on_tick;   ///< some five times a second
};

class MEDLEY_API Control {
 public:
  static constexpr int everyone = -1;
  enum class Standing : std::uint8_t { present, left, lost };

  /// Listens at once, so that its address can be told; nothing else happens before start().
  Control(int rank, int size, bool one_host);
  ~Control();   ///< stops
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  Endpoint endpoint() const;
  void start(std::vector<Endpoint> ranks, const std::string& token, Listener listener);

  /// Says goodbye and ends the thread; the owner may be called until this returns.
  void stop();

  /// From any thread. To everyone: every other rank gets it once.
  void send(int to, Message message);
  Standing standing(int rank) const { return standing_[static_cast<std::size_t>(rank)].load(std::memory_order_relaxed); }

 private:
  struct Peer {
    OwnSocket socket;
    Link link;
    bool connected = false;            ///< false while connect() is under way
    std::size_t address = 0;           ///< which of the endpoint's is tried
    Deadline since{};
  };
  struct Outgoing {
    int to;
    Message message;
  };
  void run();
  void step(std::chrono::milliseconds at_most);
  void connect_neighbours();
  void connect(int rank, std::size_t address, const std::string& waiting = {});
  bool linked(int rank) const;
  Peer* link_to(int rank);
  void accept_all();
  void serve(std::size_t index, short events);
  void drop(std::size_t index);
  void deliver(int from, Message message);
  void forward(const Message& message, int except);
  void take_outbox();
  void flush(Peer& peer);
  void watch_processes();
  void on_tick();
  void lose(int rank, const std::string& how);
  void say_goodbye();

  int rank_, size_;
  OwnSocket listener_;
  Descriptor wake_;
  std::vector<Endpoint> ranks_;
  std::string token_;
  Listener owner_;
  std::vector<std::unique_ptr<Peer>> peers_;      ///< the thread's, as is all of this
  std::map<int, Descriptor> processes_;           ///< pidfds of neighbours on this host
  std::map<int, Deadline> ended_;                 ///< processes that ended, perhaps after a goodbye that is on its way
  std::set<std::string> seen_;                    ///< messages to everyone that came by already
  std::unique_ptr<std::atomic<Standing>[]> standing_;   ///< of each rank; written by the thread alone
  std::uint64_t counter_ = 0;
  std::mutex mutex_;                              ///< of the outbox
  std::vector<Outgoing> outbox_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace medley::control
