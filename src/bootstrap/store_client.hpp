// A rank's connection to the job's store. Used through connect_store(); thread-safe.
// Every concurrent caller gets its own socket, so a long get() delays nobody else.
#pragma once

#include <sys/types.h>

#include <medley/export.hpp>

#include <mutex>
#include <string>
#include <vector>

#include "bootstrap/socket.hpp"
#include "bootstrap/store.hpp"

namespace medley {

struct StoreAddress {
  std::string host;        ///< a name, an address or "@name"
  std::uint16_t port = 0;  ///< the first port to try
  int ports = 1;
  std::string token;
  int rank = 0;
  int size = 0;
};

class MEDLEY_API StoreClient final : public Store {
 public:
  /// Connects, with retries until the deadline.
  StoreClient(StoreAddress address, Deadline deadline);
  void set(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key, Deadline deadline) override;
  std::optional<std::string> try_get(const std::string& key) override;
  std::int64_t add(const std::string& key, std::int64_t delta) override;
  void erase(const std::string& key) override;
  void erase_prefix(const std::string& prefix) override;
  std::string own_address() const override { return own_address_; }

 private:
  struct Reply {
    bool present;
    std::string value;
  };
  Reply ask(const std::string& frame, const std::string& about, Deadline deadline);
  Descriptor take_socket(Deadline deadline);
  void give_back(Descriptor socket);

  StoreAddress address_;  ///< with the one port where the handshake succeeded
  std::string own_address_;
  pid_t owner_;  ///< a forked child must not use its parent's sockets
  std::mutex mutex_;
  std::vector<Descriptor> idle_;
};

}  // namespace medley
