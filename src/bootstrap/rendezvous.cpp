#include "bootstrap/rendezvous.hpp"

#include <fmt/format.h>

#include <map>
#include <medley/error.hpp>
#include <mutex>

#include "bootstrap/store_client.hpp"
#include "bootstrap/store_server.hpp"

namespace medley {
namespace {

// How long an exiting rank 0 keeps serving ranks that have not left yet.
constexpr std::chrono::milliseconds farewell_limit{1000};

// A process's membership in one job: rank 0's server, every rank's connection, and how many contexts use it.
struct Membership {
  std::mutex mutex;
  std::unique_ptr<StoreServer> server;
  std::shared_ptr<Store> store;
  int uses = 0;

  Membership() = default;
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;
  ~Membership() {
    store.reset();
    if (server) server->drain(farewell_limit);
  }
};

// One per job and rank for the lifetime of the process, since a job's store has one address: a
// second context could not listen there again, and a rank that is ahead must not find the store of the
// previous context.
struct Memberships {
  std::mutex mutex;
  std::map<std::string, Membership> of_job;
};

Memberships& memberships() {
  static Memberships all;
  return all;
}

[[noreturn]] void cannot_meet(const Place& place, const char* what, const char* line) {
  throw Error(ErrorKind::invalid,
              fmt::format("rank {} of {} ({}) cannot meet the others: {}; in the shell that starts the job, run: {}",
                          place.rank, place.size, name(place.source), what, line));
}

void check_reachable(const Place& place) {
  if (place.store_host.empty()) {
    cannot_meet(place, "ranks span hosts and nobody says where rank 0 runs",
                "export MEDLEY_STORE=HOST_OF_RANK_0:29400 MEDLEY_TOKEN=$(head -c16 /dev/urandom | base64)");
  }
  if (place.token.empty()) {
    cannot_meet(place, "ranks span hosts and share no secret token yet",
                "export MEDLEY_TOKEN=$(head -c16 /dev/urandom | base64)");
  }
}

void join(const Place& place, Membership& membership, Deadline deadline) {
  if (place.size == 1) {
    membership.store = std::make_shared<LocalStore>();
    return;
  }
  check_reachable(place);
  StoreAddress address{place.store_host, place.store_port, place.store_ports, place.token, place.rank, place.size};
  if (place.rank == 0 && !place.store_served) {
    StoreServerOptions options;
    options.host = place.store_host;
    options.port = place.store_port;
    options.ports = place.store_ports;
    options.token = place.token;
    options.size = place.size;
    if (!membership.server) membership.server = std::make_unique<StoreServer>(options);  // kept by a failed attempt
    if (membership.server->port() != 0) address.port = membership.server->port();
    address.ports = 1;
  }
  membership.store = std::make_shared<StoreClient>(address, deadline);
}

}  // namespace

std::shared_ptr<Store> connect_store(const Place& place, Deadline deadline) {
  const std::string job =
      fmt::format("{}:{} {} {}/{}", place.store_host, place.store_port, place.token, place.rank, place.size);
  Membership* membership = nullptr;
  {
    Memberships& all = memberships();
    const std::lock_guard lock(all.mutex);
    membership = &all.of_job[job];
  }
  // Only this rank's threads wait here: ranks that are threads of one process join concurrently.
  const std::lock_guard lock(membership->mutex);
  if (!membership->store) join(place, *membership, deadline);
  return std::make_shared<PrefixStore>(membership->store, fmt::format("context {}/", membership->uses++));
}

}  // namespace medley
