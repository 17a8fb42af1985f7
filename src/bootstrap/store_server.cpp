#include "bootstrap/store_server.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <medley/error.hpp>
#include <medley/sdk/quiet_thread.hpp>
#include <thread>

#include "bootstrap/store_loop.hpp"

namespace medley {

class StoreServer::Impl {
 public:
  explicit Impl(const StoreServerOptions& options) : loop_(options) {
    thread_ = start_quiet_thread("medley-store", [this] { loop_.run(); });
  }
  ~Impl() {
    loop_.stop();
    thread_.join();
  }
  StoreLoop& loop() { return loop_; }
  pid_t owner() const { return owner_; }

 private:
  StoreLoop loop_;
  std::thread thread_;
  pid_t owner_ = getpid();
};

StoreServer::StoreServer(const StoreServerOptions& options) : impl_(std::make_unique<Impl>(options)) {}

StoreServer::~StoreServer() {
  // A forked child has no service thread and must not end its parent's service.
  if (impl_->owner() != getpid()) (void)impl_.release();
}

std::uint16_t StoreServer::port() const { return impl_->loop().port(); }

bool StoreServer::drain(std::chrono::milliseconds limit) {
  return impl_->owner() == getpid() && impl_->loop().wait_until_empty(limit);
}

}  // namespace medley
