// The control thread of a rank: heartbeats, death notices, questions, aborts and the exchanges that create comms, over
// its own sockets. It calls no backend and no user code and never blocks, so it still works when everything else is
// stuck.
//
// Every rank links to the ranks 1, 2, 4, … after it, so that news reaches all in log2(n) steps and the loss of any
// ranks leaves the rest connected; other links are made on the first send. A rank that leaves announces it; the
// FailureDetector decides which ranks are lost without that. A forked child closes the inherited sockets: otherwise it
// would make its parent look alive.
//
// Ownership: the thread owns everything except the outbox and `standing_`. Other threads pass it messages through the
// outbox and read `standing_`. The owner's callbacks run on this thread; they must neither block nor take a lock that
// is held across a library call. The thread itself holds the outbox's lock to swap it, a Gathering's to finish it, and
// never two at a time.
#pragma once

#include <medley/export.hpp>
#include <medley/sdk/descriptor.hpp>

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "bootstrap/store.hpp"
#include "control/addresses.hpp"
#include "control/failure_detector.hpp"
#include "control/fork_registry.hpp"
#include "control/gathering.hpp"
#include "control/link.hpp"

namespace medley::control {

/// The owner's callbacks; all run on the control thread, none may block.
struct Listener {
  std::function<void(int from, const Message& message)> on_message;
  /// `rank` may be this one: the others declared it lost.
  std::function<void(int rank, const std::string& how)> on_lost;
  std::function<void(int rank)> on_left;
  std::function<void()> on_tick;                                ///< about five times a second
  std::function<void(const std::string& line)> on_notice = {};  ///< about a suspicion, or that it was wrong
};

class MEDLEY_API Control {
 public:
  static constexpr int everyone = -1;
  /// The limit of unauthenticated connections; one more closes the oldest.
  static constexpr std::size_t most_strangers = 128;
  enum class Standing : std::uint8_t { present, left, lost };

  /// Listens at once, so that its address can be published; does nothing else before start().
  Control(int rank, int size, bool one_host);
  ~Control();  ///< stops
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  Endpoint endpoint() const;
  void start(std::vector<Endpoint> ranks, const std::string& token, Listener listener,
             const DetectorLimits& limits = {});

  /// Sends goodbye and ends the thread; callbacks may run until this returns.
  void stop();

  /// Thread-safe. To everyone: every other rank gets it once.
  void send(int to, Message message);
  /// (relaxed: one word that only ever changes from present to another value; it publishes no other data)
  Standing standing(int rank) const {
    return standing_[static_cast<std::size_t>(rank)].load(std::memory_order_relaxed);
  }

  /// Thread-safe: starts an exchange among its members. Never blocks; the caller polls or waits for the result.
  void start(std::shared_ptr<Gathering> gathering);
  /// For an exchange that its caller gives up: asks the members which of them called it, for Gathering::not_called().
  void ask_who_called(const Gathering& gathering);
  void abandon(const std::string& gathering);

 private:
  struct Peer {
    OwnSocket socket;
    Link link;
    bool connected = false;   ///< false while connect() is in progress
    std::size_t address = 0;  ///< index of the endpoint's address being tried
    Deadline since{};
    bool outgoing = false;
    bool has_goodbye = false;  ///< this rank's, sent or waiting for the handshake
    std::uint64_t handed = 0;  ///< bytes passed to the kernel
  };
  struct Probe {
    OwnSocket socket;
    Deadline since{};
  };
  struct Outgoing {
    int to;
    Message message;
    std::shared_ptr<Gathering> begun = {};  ///< instead of a message
  };
  void run();
  void step(std::chrono::milliseconds at_most);
  void take_outbox();
  void on_tick();
  void wake();

  // Links (control_links.cpp)
  void connect_neighbours();
  void connect(int rank, std::size_t address, const std::string& waiting = {});
  void try_next_address(std::size_t index);
  bool linked(int rank) const;  ///< or connecting
  Peer* joined_link(int rank) const;
  Peer* link_to(int rank);
  void send_to(int rank, const Message& message);
  void send_all(const std::vector<Gatherings::Outgoing>& messages);
  void accept_some();
  bool shed_stranger();
  void serve(std::size_t index, short events);
  void drop(std::size_t index);
  void flush(Peer& peer);
  void tend_links(Deadline now);

  // Liveness (control_liveness.cpp)
  void watch_process(int rank, std::int64_t process);
  void note_ended_processes();
  void note_transport(const Peer& peer, Deadline now);
  void probe(int rank, Deadline now);
  void hear_probe(int rank);
  void act_on_findings(Deadline now);

  // News (control_messages.cpp)
  static constexpr std::string_view to_all = "all/";  ///< in front of the kind of an owner's broadcast
  void deliver(int from, Message message);
  bool receive_broadcast(int& from, Message& message);
  void receive_left(int rank);
  void receive_lost(int from, const Message& message);
  bool mark_lost(int rank);
  std::string stamp(const std::string& body);
  void forward(const Message& message, int except);
  void lose(int rank, const std::string& how);
  void say_goodbye();

  int rank_, size_;
  OwnSocket listener_;
  Deadline listen_again_{};  ///< after a pause for lack of descriptors
  Descriptor wake_;
  /// One epoll for the pidfds: a poll costs per event, not per watched process
  Descriptor process_events_;
  std::vector<Endpoint> ranks_;
  std::string token_;
  Listener owner_;
  std::vector<std::unique_ptr<Peer>> peers_;  ///< used by the thread only, as is everything below
  std::map<int, Descriptor> processes_;       ///< pidfds of the ranks on this host
  std::map<int, Probe> probes_;
  FailureDetector detector_{DetectorLimits{}};
  DetectorLimits limits_;
  Gatherings gatherings_;
  std::set<std::string> seen_;                         ///< broadcast messages already seen
  std::unique_ptr<std::atomic<Standing>[]> standing_;  ///< of each rank; written by the thread only
  std::uint64_t counter_ = 0;
  std::mutex mutex_;  ///< guards the outbox
  std::vector<Outgoing> outbox_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace medley::control
