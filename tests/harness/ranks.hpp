// Runs a function as several ranks of one job, as threads or as processes, and reports failures with their rank.
// Sanitizers can follow threads; users run processes.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <medley/medley.hpp>
#include <string>
#include <thread>
#include <vector>

#include "bootstrap/store_client.hpp"
#include "bootstrap/store_server.hpp"

namespace medley::test {

using Body = std::function<void(Context&)>;

inline ContextOptions options_of(int rank, int size, std::shared_ptr<Store> store) {
  ContextOptions options;
  options.rank = rank;
  options.size = size;
  options.store = std::move(store);
  options.deadline = std::chrono::seconds(60);
  return options;
}

/// Each rank is a thread with its own context. Failures are reported with the rank.
inline void run_threads(int size, const Body& body, const std::function<void(ContextOptions&)>& adjust = {}) {
  auto store = make_local_store();
  std::vector<std::string> errors(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        ContextOptions options = options_of(rank, size, store);
        if (adjust) adjust(options);
        Context context(options);
        body(context);
      } catch (const std::exception& error) {
        errors[static_cast<std::size_t>(rank)] = error.what();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (int rank = 0; rank < size; ++rank) {
    EXPECT_EQ(errors[static_cast<std::size_t>(rank)], "") << "on rank " << rank << " of " << size;
  }
}

/// Memory shared by forked ranks and the test.
template <typename T>
class Shared {
 public:
  explicit Shared(std::size_t count = 1) : count_(count) {
    data_ =
        static_cast<T*>(mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  }
  ~Shared() { munmap(data_, count_ * sizeof(T)); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  T& operator[](std::size_t i) const { return data_[i]; }
  T& operator[](int i) const { return data_[i]; }
  T& operator*() const { return *data_; }

 private:
  std::size_t count_;
  T* data_;
};

/// The store of forked ranks, in the test's own process, so that it outlives every rank. It has a thread, so it is
/// opened after the fork: a lock that a thread holds at a fork, such as a sanitizer's allocator's, stays held in the
/// child.
class ForkedStore {
 public:
  void open() {
    StoreServerOptions served;
    served.token = "test";
    server_ = std::make_unique<StoreServer>(served);
    *port_ = server_->port();
  }
  /// Called in a rank.
  std::shared_ptr<Store> connect(int rank, int size) const {
    while (*port_ == 0) usleep(500);
    return std::make_shared<StoreClient>(
        StoreAddress{.host = "127.0.0.1", .port = *port_, .ports = 1, .token = "test", .rank = rank, .size = size},
        std::chrono::steady_clock::now() + std::chrono::seconds(60));
  }

 private:
  Shared<std::atomic<std::uint16_t>> port_;
  std::unique_ptr<StoreServer> server_;
};

/// Each rank is a forked process. A gtest failure, an exception or a signal in one fails the test.
inline void run_processes(int size, const Body& body, const std::function<void(ContextOptions&)>& adjust = {}) {
  ForkedStore store;
  std::vector<pid_t> children;
  for (int rank = 0; rank < size; ++rank) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child > 0) {
      children.push_back(child);
      continue;
    }
    int status = 0;
    try {
      ContextOptions options = options_of(rank, size, store.connect(rank, size));
      if (adjust) adjust(options);
      Context context(options);
      body(context);
      status = ::testing::Test::HasFailure() ? 1 : 0;
    } catch (const std::exception& error) {
      std::fprintf(stderr, "rank %d of %d: %s\n", rank, size, error.what());
      status = 2;
    }
    std::fflush(nullptr);
    _exit(status);
  }
  store.open();
  for (int rank = 0; rank < size; ++rank) {
    int status = 0;
    ASSERT_EQ(waitpid(children[static_cast<std::size_t>(rank)], &status, 0), children[static_cast<std::size_t>(rank)]);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
        << "rank " << rank << " of " << size << " ended with " << status;
  }
}

}  // namespace medley::test
