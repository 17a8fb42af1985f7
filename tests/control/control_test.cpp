// The control thread: messages reach everyone once, a goodbye is not a loss, a killed process is one, unauthenticated
// clients get nowhere and stay few, exchanges, silence, and ranks that others declared lost.
#include "control/control.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <condition_variable>
#include <ctime>
#include <thread>

#include "harness/ranks.hpp"

namespace medley::control {
namespace {

using namespace std::chrono_literals;

/// What one rank received, for the test's thread.
struct Heard {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> messages, notices;
  std::vector<int> lost, left;

  Listener listener() {
    return {.on_message =
                [this](int from, const Message& m) {
                  add([&] { messages.push_back(std::to_string(from) + m.kind + m.body); });
                },
            .on_lost = [this](int rank, const std::string&) { add([&] { lost.push_back(rank); }); },
            .on_left = [this](int rank) { add([&] { left.push_back(rank); }); },
            .on_tick = {},
            .on_notice = [this](const std::string& line) { add([&] { notices.push_back(line); }); }};
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

Descriptor knock(std::uint16_t port) {
  sockaddr_in there{};
  there.sin_family = AF_INET;
  there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  there.sin_port = htons(port);
  Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(connect(socket.fd(), reinterpret_cast<sockaddr*>(&there), sizeof there), 0);
  return socket;
}

/// Whether the other end closes the connection within 20 s.
bool is_closed(const Descriptor& socket) {
  char chunk[256];
  for (;;) {
    pollfd entry{socket.fd(), POLLIN, 0};
    if (poll(&entry, 1, 20'000) <= 0) return false;
    if (recv(socket.fd(), chunk, sizeof chunk, 0) <= 0) return true;
  }
}

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
  std::vector<Heard> heard;  // outlives the threads that write to it
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
    job.controls[1]->send(Control::everyone, {"later", ""});  // a duplicate would arrive before this
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
  const Descriptor stranger = knock(job.controls[0]->endpoint().port);
  const std::string garbage(4096, 'x');
  ASSERT_EQ(send(stranger.fd(), garbage.data(), garbage.size(), MSG_NOSIGNAL), 4096);
  EXPECT_TRUE(is_closed(stranger));
  job.controls[1]->send(0, {"still", ""});
  Heard& h = job.heard[0];
  EXPECT_TRUE(h.until([&] { return h.messages.size() == 1; }));
  EXPECT_TRUE(h.lost.empty());
}

TEST(Control, ACrowdOfStrangersIsKeptSmall) {
  Job job(2);
  std::vector<Descriptor> crowd;
  for (std::size_t i = 0; i < 2 * Control::most_strangers; ++i)
    crowd.push_back(knock(job.controls[0]->endpoint().port));
  // The oldest go first
  for (std::size_t i = 0; i < Control::most_strangers; ++i) EXPECT_TRUE(is_closed(crowd[i])) << i;
  job.controls[1]->send(0, {"still", ""});
  Heard& h = job.heard[0];
  EXPECT_TRUE(h.until([&] { return h.messages.size() == 1; }));
  EXPECT_TRUE(h.lost.empty());
}

/// CPU time, which does not grow on a busy machine.
double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

TEST(Control, WithoutDescriptorsItWaitsInsteadOfSpinning) {
  Job job(2);
  job.controls[1]->send(0, {"up", ""});
  Heard& h = job.heard[0];
  ASSERT_TRUE(h.until([&] { return h.messages.size() == 1; }));
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  Descriptor stranger(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const rlimit none{static_cast<rlim_t>(stranger.fd()), before.rlim_max};  // below every free descriptor number
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  sockaddr_in there{};
  there.sin_family = AF_INET;
  there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  there.sin_port = htons(job.controls[0]->endpoint().port);
  EXPECT_EQ(connect(stranger.fd(), reinterpret_cast<sockaddr*>(&there), sizeof there), 0);
  const double began = cpu_seconds();
  std::this_thread::sleep_for(1s);  // the measured interval
  EXPECT_LT(cpu_seconds() - began, 0.3);
  setrlimit(RLIMIT_NOFILE, &before);
  pollfd greeted{stranger.fd(), POLLIN, 0};
  EXPECT_EQ(poll(&greeted, 1, 20'000), 1) << "it does not listen again";
}

TEST(Control, ExchangesGiveEveryMemberEverybodysString) {
  constexpr int size = 9;
  Job job(size);
  const std::vector<int> all{8, 7, 6, 5, 4, 3, 2, 1, 0}, some{1, 4, 6};
  std::vector<std::shared_ptr<Gathering>> gatherings;
  for (int round = 0; round < 20; ++round) {
    for (const auto& members : {all, some}) {
      for (std::size_t place = 0; place < members.size(); ++place) {
        gatherings.push_back(std::make_shared<Gathering>(std::to_string(round) + "/" + std::to_string(members.size()),
                                                         members, static_cast<int>(place),
                                                         std::to_string(members[place])));
        job.controls[static_cast<std::size_t>(members[place])]->start(gatherings.back());
      }
    }
  }
  for (const auto& gathering : gatherings) {
    ASSERT_TRUE(gathering->wait_until(std::chrono::steady_clock::now() + 20s));
    std::vector<std::string> expected;
    for (int member : gathering->members()) expected.push_back(std::to_string(member));
    EXPECT_EQ(gathering->all(), expected);
  }
}

/// The last rank of a job of two, played by the test: it sends what the test wants, or nothing.
class Played {
 public:
  explicit Played(const DetectorLimits& limits) : control_(0, 2, true), socket_(knock(control_.endpoint().port)) {
    Endpoint own = control_.endpoint(), other = own;
    other.port = 0;  // no listener to connect to
    other.pid = own.pid;
    control_.start({own, other}, "secret", heard.listener(), limits);
    while (!link_.joined()) exchange();
  }
  void say(const Message& message) {
    link_.send(message);
    flush();
  }
  Heard heard;

 private:
  void flush() {
    while (!link_.outgoing().empty()) {
      const ssize_t sent = ::send(socket_.fd(), link_.outgoing().data(), link_.outgoing().size(), MSG_NOSIGNAL);
      ASSERT_GT(sent, 0);
      link_.taken(static_cast<std::size_t>(sent));
    }
  }
  void exchange() {
    char chunk[4096];
    const ssize_t got = recv(socket_.fd(), chunk, sizeof chunk, 0);
    ASSERT_GT(got, 0);
    std::vector<Message> ignored;
    ASSERT_TRUE(link_.receive({chunk, static_cast<std::size_t>(got)}, ignored));
    flush();
  }
  Control control_;
  Descriptor socket_;
  Link link_ = Link::connecting("secret", 1, 2);
};

TEST(Control, ARankThatOthersGaveUpHearsOfItsOwnLoss) {
  Played one({});
  one.say({"lost", "1 1 {\"rank\":0,\"how\":\"a reason\"}"});
  EXPECT_TRUE(one.heard.until([&] { return one.heard.lost == std::vector<int>{0}; }));
}

TEST(Control, ASilentRankIsShownAndTakenBackButNotLost) {
  Played one({.silent_after = 500ms, .lost_after = 1500ms});
  ASSERT_TRUE(one.heard.until([&] { return one.heard.notices.size() == 1; }));
  EXPECT_NE(one.heard.notices[0].find("rank 0 does not hear rank 1"), std::string::npos) << one.heard.notices[0];
  for (bool taken_back = false; !taken_back;) {
    one.say({"beat", ""});
    std::unique_lock lock(one.heard.mutex);
    taken_back = one.heard.changed.wait_for(lock, 200ms, [&] { return one.heard.notices.size() >= 2; });
  }
  EXPECT_NE(one.heard.notices[1].find("no longer suspects rank 1"), std::string::npos) << one.heard.notices[1];
  EXPECT_TRUE(one.heard.until([&] { return one.heard.lost.empty(); }));  // under its lock
}

TEST(Control, NonsenseFromARankDoesNoHarm) {
  Played one({});
  for (const char* body :
       {"", "1", "1 2", "x y z", "1 3 {", "1 4 {}", "1 5 {\"rank\":\"x\"}", "1 6 {\"rank\":99}", "1 7 [1]"}) {
    for (const char* kind : {"lost", "all/news", "gather/up", "gather/down", ""}) one.say({kind, body});
  }
  one.say({"end", ""});
  EXPECT_TRUE(one.heard.until([&] { return !one.heard.messages.empty() && one.heard.messages.back() == "1end"; }));
  EXPECT_TRUE(one.heard.until([&] { return one.heard.lost.empty(); }));  // under its lock
}

}  // namespace
}  // namespace medley::control
