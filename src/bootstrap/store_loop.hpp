// The event loop behind StoreServer: connections, waiting gets and the table, all used by one thread only.
#pragma once

#include <sys/epoll.h>

#include <array>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "bootstrap/socket.hpp"
#include "bootstrap/store_server.hpp"
#include "bootstrap/store_session.hpp"
#include "bootstrap/table.hpp"

namespace medley {

class StoreLoop {
 public:
  explicit StoreLoop(const StoreServerOptions& options);
  std::uint16_t port() const { return port_of(listener_); }
  void run();   ///< on the service's thread, until stop()
  void stop();  ///< from any thread
  bool wait_until_empty(std::chrono::milliseconds limit);

 private:
  using Id = std::uint64_t;
  struct Connection {
    Descriptor socket;
    StoreSession session;
    Deadline admission_ends;
    std::string out = {};  ///< to be sent
    std::size_t sent = 0;  ///< of `out`
    bool stalled = false;  ///< the socket is full; epoll reports when it is writable
    std::optional<std::string> awaited = {};
  };

  int milliseconds_to_next_timer() const;
  void watch(int fd, Id id, std::uint32_t events, int how);
  void accept_some();
  void add_stranger(Descriptor socket);
  void shed_load();
  void drop_late_strangers();
  void serve(Id id, std::uint32_t events);
  bool read_from(Connection& connection, std::vector<wire::Request>& requests);
  bool answer(Id id, Connection& connection, const wire::Request& request);
  void publish(const std::string& key);
  bool flush(Id id, Connection& connection);
  void drop(Id id);
  void count_admitted(int change);

  StoreServerOptions options_;
  Descriptor listener_, wake_, epoll_;
  bool listening_ = true;  ///< false for a moment when no descriptor is left
  Deadline listen_again_{};
  Id next_id_ = 2;  ///< 0 is the listener, 1 the wake-up
  std::unordered_map<Id, Connection> connections_;
  std::deque<Id> strangers_;  ///< oldest first; may name connections admitted or dropped since
  int stranger_count_ = 0;
  StoreTable table_;
  std::map<std::string, std::set<Id>> waiting_;
  std::array<char, 65536> chunk_{};

  std::mutex mutex_;  ///< guards what follows, the only state that other threads access
  std::condition_variable left_;
  int admitted_ = 0;
};

}  // namespace medley
