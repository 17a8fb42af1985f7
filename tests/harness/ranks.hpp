// Runs a function as several ranks of one job, as threads or as processes, and reports what went wrong on which rank.
// Threads are what sanitizers can follow; processes are what users run.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

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

/// Each rank is a thread with a context of its own. Failures inside are reported with the rank.
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

/// Each rank is a forked process. A gtest failure, an exception or a signal in one fails the test.
inline void run_processes(int size, const Body& body, const std::function<void(ContextOptions&)>& adjust = {}) {
  // Forked before the store's thread exists: a child would inherit whatever lock that thread holds at the moment.
  int ports[2];
  ASSERT_EQ(pipe(ports), 0);
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
      std::uint16_t port = 0;
      if (read(ports[0], &port, sizeof port) != sizeof port) throw std::runtime_error("the parent gave no port");
      const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
      auto store = std::make_shared<StoreClient>(
          StoreAddress{.host = "127.0.0.1", .port = port, .ports = 1, .token = "test", .rank = rank, .size = size},
          deadline);
      ContextOptions options = options_of(rank, size, store);
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
  StoreServerOptions served;
  served.token = "test";
  StoreServer server(served);   // in the parent, so that it outlives every rank
  const std::vector<std::uint16_t> port_for_each(static_cast<std::size_t>(size), server.port());
  const auto bytes = static_cast<ssize_t>(port_for_each.size() * sizeof(std::uint16_t));
  EXPECT_EQ(write(ports[1], port_for_each.data(), static_cast<std::size_t>(bytes)), bytes);
  close(ports[0]);
  close(ports[1]);
  for (int rank = 0; rank < size; ++rank) {
    int status = 0;
    ASSERT_EQ(waitpid(children[static_cast<std::size_t>(rank)], &status, 0), children[static_cast<std::size_t>(rank)]);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "rank " << rank << " of " << size << " ended with " << status;
  }
}

}  // namespace medley::test
