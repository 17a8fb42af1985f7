// Unauthenticated clients of the store: none gets in, none delays the job.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <medley/error.hpp>
#include <medley/sdk/descriptor.hpp>
#include <thread>
#include <vector>

#include "bootstrap/deadlines.hpp"
#include "bootstrap/store_client.hpp"
#include "bootstrap/store_server.hpp"

namespace medley {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::in;

Descriptor knock(std::uint16_t port) {
  Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(socket.fd(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  return socket;
}

void say(const Descriptor& socket, const std::string& bytes) {
  (void)!send(socket.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

// Reads until the server closes the connection; false when it has not within 20 s.
bool is_shown_out(const Descriptor& socket) {
  char bytes[256];
  for (;;) {
    pollfd entry{socket.fd(), POLLIN, 0};
    if (poll(&entry, 1, 20'000) <= 0) return false;
    if (recv(socket.fd(), bytes, sizeof bytes, 0) <= 0) return true;
  }
}

class Strangers : public testing::Test {
 protected:
  static StoreServerOptions options() {
    StoreServerOptions options;
    options.token = "the right token";
    options.size = 2;
    options.handshake_limit = milliseconds(200);
    options.strangers = 16;
    return options;
  }
  StoreAddress address(const std::string& token = "the right token", int size = 2) const {
    return {.host = "127.0.0.1", .port = server_.port(), .ports = 1, .token = token, .rank = 1, .size = size};
  }
  // A real rank is admitted and served.
  void expect_service() {
    StoreClient client(address(), in(seconds(20)));
    client.set("real", "rank");
    EXPECT_EQ(client.get("real", in(seconds(20))), "rank");
  }
  StoreServer server_{options()};
};

TEST_F(Strangers, GarbageIsShownOut) {
  for (const std::string& garbage :
       {std::string("GET / HTTP/1.1\r\n\r\n"), std::string(1 << 20, '\xff'), std::string(80, '\0'),
        "MEDLEY1\n" + std::string(72, 'x'), "MEDLEY1\n" + std::string(1 << 20, 'x')}) {
    const Descriptor stranger = knock(server_.port());
    say(stranger, garbage);
    EXPECT_TRUE(is_shown_out(stranger));
  }
  expect_service();
}

TEST_F(Strangers, WhoStallsIsShownOutAfterTheLimit) {
  const Descriptor silent = knock(server_.port());
  const Descriptor halfway = knock(server_.port());
  say(halfway, "MEDLEY1\nxxxx");
  expect_service();
  EXPECT_TRUE(is_shown_out(silent));
  EXPECT_TRUE(is_shown_out(halfway));
  expect_service();
}

TEST_F(Strangers, ACrowdDoesNotKeepRanksOut) {
  std::vector<Descriptor> crowd;
  for (int i = 0; i < 200; ++i) {
    crowd.push_back(knock(server_.port()));
    if (i % 20 == 0) expect_service();
  }
  expect_service();
  for (const auto& stranger : crowd) EXPECT_TRUE(is_shown_out(stranger));
}

TEST_F(Strangers, RanksGoOnWhileACrowdComesAndGoes) {
  StoreClient client(address(), in(seconds(20)));
  std::thread crowd([port = server_.port()] {
    for (int i = 0; i < 300; ++i) say(knock(port), i % 2 ? "garbage" : std::string(100, 'M'));
  });
  for (int i = 0; i < 300; ++i) ASSERT_EQ(client.add("count", 1), i + 1);
  crowd.join();
}

TEST_F(Strangers, AWrongTokenIsRefusedWithAReason) {
  try {
    StoreClient client(address("a wrong token"), in(seconds(30)));
    FAIL() << "it got in";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::invalid);
    EXPECT_NE(std::string(error.what()).find("MEDLEY_TOKEN"), std::string::npos) << error.what();
  }
  expect_service();
}

TEST_F(Strangers, AnotherWorldSizeIsRefusedAtOnce) {
  try {
    StoreClient client(address("the right token", 3), in(seconds(30)));
    FAIL() << "it got in";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::mismatch);
    EXPECT_NE(std::string(error.what()).find("3 ranks"), std::string::npos) << error.what();
  }
}

TEST_F(Strangers, WithoutATokenThereIsNoStore) {
  StoreServerOptions open = options();
  open.token = "";
  EXPECT_THROW(StoreServer{open}, Error);
}

// The reverse: a rank that finds another program on the first port tries the next.
TEST(StrangeServers, ARankPassesByWhoCannotProveTheToken) {
  StoreServerOptions options;
  options.token = "token of another job";
  const StoreServer other_job(options);
  options.token = "token of this job";
  options.port = other_job.port();
  options.ports = 8;
  const StoreServer ours(options);
  StoreClient client(
      {.host = "127.0.0.1", .port = other_job.port(), .ports = 8, .token = "token of this job", .rank = 1, .size = 2},
      in(seconds(20)));
  client.set("a", "b");
  EXPECT_EQ(client.try_get("a"), "b");
}

TEST(StrangeServers, ASilentOneDoesNotHoldARankBeyondItsDeadline) {
  const Descriptor silent(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof name;
  ASSERT_EQ(bind(silent.fd(), reinterpret_cast<sockaddr*>(&name), sizeof name), 0);
  ASSERT_EQ(listen(silent.fd(), 16), 0);
  getsockname(silent.fd(), reinterpret_cast<sockaddr*>(&name), &length);
  try {
    StoreClient client(
        {.host = "127.0.0.1", .port = ntohs(name.sin_port), .ports = 1, .token = "t", .rank = 1, .size = 2},
        in(milliseconds(100)));
    FAIL() << "nobody answered";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::timeout);
  }
}

}  // namespace
}  // namespace medley
