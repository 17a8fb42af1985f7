// The control thread: messages reach everyone once, a goodbye is no loss, a killed process is one, a stranger gets nowhere.
#include "control/control.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <condition_variable>
#include <thread>

#include "harness/ranks.hpp"

namespace medley::control {
namespace {

using namespace std::chrono_literals;

/// What one rank heard, for the test's thread.
struct Heard {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> messages;
  std::vector<int> lost, left;

  Listener listener() {
    return {.on_message = [this](int from, const Message& m) { add([&] { messages.push_back(std::to_string(from) + m.kind + m.body); }); },
            .on_lost = [this](int rank, const std::string&) { add([&] { lost.push_back(rank); }); },
            .on_left = [this](int rank) { add([&] { left.push_back(rank); }); },
            .on_tick = {}};
  }
  template <typename F>
  void add(F change) {
    const std::lock_guard lock(mutex);
    change();
    changed.notify_all();
  }
  template <typename F>
  bool until(F condition) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, 20s, condition);
  }
};

struct Job {
  explicit Job(int size) : heard(static_cast<std::size_t>(size)) {
    std::vector<Endpoint> endpoints;
    for (int r = 0; r < size; ++r) {
      controls.push_back(std::make_unique<Control>(r, size, true));
      endpoints.push_back(controls.back()->endpoint());
    }
    for (int r = 0; r < size; ++r) {
      controls[static_cast<std::size_t>(r)]->start(endpoints, "secret", heard[static_cast<std::size_t>(r)].listener());
    }
  }
  std::vector<Heard> heard;   // outlives the threads that write to it
  std::vector<std::unique_ptr<Control>> controls;
};

TEST(Control, MessagesReachEveryoneOnceAndOneRankAlone) {
  for (int size : {2, 3, 5, 8}) {
    Job job(size);
    job.controls[0]->send(Control::everyone, {"news", "x"});
    job.controls[0]->send(size - 1, {"only", "y"});
    for (int r = 1; r < size; ++r) {
      Heard& h = job.heard[static_cast<std::size_t>(r)];
      const std::size_t expected = r == size - 1 ? 2 : 1;
      EXPECT_TRUE(h.until([&] { return h.messages.size() >= expected; })) << r << " of " << size;
    }
    job.controls[1]->send(Control::everyone, {"later", ""});   // what comes twice would be there before this
    for (int r = 2; r < size; ++r) {
      Heard& h = job.heard[static_cast<std::size_t>(r)];
      const std::size_t expected = r == size - 1 ? 3 : 2;
      EXPECT_TRUE(h.until([&] { return h.messages.size() >= expected; }));
      EXPECT_EQ(h.messages.size(), expected);
    }
  }
}

TEST(Control, AGoodbyeIsNoLoss) {
  Job job(5);
  job.controls[2].reset();
  for (int r : {0, 1, 3, 4}) {
    Heard& h = job.heard[static_cast<std::size_t>(r)];
    EXPECT_TRUE(h.until([&] { return !h.left.empty(); })) << r;
    EXPECT_EQ(h.left, std::vector<int>{2});
    EXPECT_TRUE(h.lost.empty());
  }
}

TEST(Control, AStrangerGetsNowhere) {
  Job job(2);
  sockaddr_in there{};
  there.sin_family = AF_INET;
  there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  there.sin_port = htons(job.controls[0]->endpoint().port);
  const Descriptor stranger(socket(AF_INET, SOCK_STREAM, 0));
  ASSERT_EQ(connect(stranger.fd(), reinterpret_cast<sockaddr*>(&there), sizeof there), 0);
  const std::string garbage(4096, 'x');
  ASSERT_EQ(send(stranger.fd(), garbage.data(), garbage.size(), MSG_NOSIGNAL), 4096);
  char chunk[64];
  while (recv(stranger.fd(), chunk, sizeof chunk, 0) > 0) {   // the greeting, then the end
  }
  job.controls[1]->send(0, {"still", ""});
  Heard& h = job.heard[0];
  EXPECT_TRUE(h.until([&] { return h.messages.size() == 1; }));
  EXPECT_TRUE(h.lost.empty());
}

}  // namespace
}  // namespace medley::control
