#include "bootstrap/wire.hpp"

#include <gtest/gtest.h>

#include "bootstrap/store_session.hpp"

namespace medley {
namespace {

const std::string token = "token";

struct Door {
  StoreSession session{token, 2};
  std::vector<wire::Request> requests;
  std::string out;
  Nonce server = *wire::parse_greeting(session.greeting());
  Nonce client = random_nonce();

  bool hear(std::string_view bytes) { return session.receive(bytes, requests, out); }
  std::string hello(std::uint32_t size = 2) const { return wire::hello(token, server, client, 1, size); }
};

TEST(Proof, IsHmacSha256) {  // RFC 4231, test case 2
  const Proof proof = prove("Jefe", "what do ya want for nothing?");
  EXPECT_EQ(proof[0], 0x5b);
  EXPECT_EQ(proof[1], 0xdc);
  EXPECT_EQ(proof[31], 0x43);
}

TEST(Proof, TokensAndNoncesDiffer) {
  EXPECT_NE(random_token(), random_token());
  EXPECT_EQ(random_token().size(), 32u);
  EXPECT_NE(random_nonce(), random_nonce());
}

TEST(Session, AdmitsWhoProvesTheTokenByteByByte) {
  Door door;
  for (const char byte : door.hello()) ASSERT_TRUE(door.hear({&byte, 1}));
  EXPECT_TRUE(door.session.admitted());
  const auto answer = wire::parse_verdict(door.out, token, door.server, door.client);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->code, wire::Verdict::welcome);
}

TEST(Session, RefusesAReplayedHello) {
  Door first, second;
  EXPECT_FALSE(second.hear(first.hello())) << "it proves another nonce";
  EXPECT_FALSE(second.session.admitted());
}

TEST(Session, RefusesAHelloWhoseRankWasChanged) {
  Door door;
  std::string hello = door.hello();
  hello[8] = 0;
  EXPECT_FALSE(door.hear(hello));
}

TEST(Session, TheServersProofCannotBeMadeFromTheClients) {
  Door door;
  std::string reflected(1, '\0');
  reflected += std::string("\2\0\0\0", 4) + door.hello().substr(wire::hello_bytes - 32);
  EXPECT_FALSE(wire::parse_verdict(reflected, token, door.server, door.client));
}

TEST(Session, TellsAnotherSizeWithAProof) {
  Door door;
  EXPECT_FALSE(door.hear(door.hello(3)));
  const auto answer = wire::parse_verdict(door.out, token, door.server, door.client);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->code, wire::Verdict::wrong_size);
  EXPECT_EQ(answer->size, 2u);
}

TEST(Session, TakesRequestsHoweverTheyAreCut) {
  const std::string bytes = wire::request(wire::Verb::set, "key", "value") + wire::request(wire::Verb::get, "") +
                            wire::request(wire::Verb::add, "n", wire::number(-3));
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    Door door;
    ASSERT_TRUE(door.hear(door.hello() + bytes.substr(0, cut)));
    ASSERT_TRUE(door.hear(bytes.substr(cut)));
    ASSERT_EQ(door.requests.size(), 3u);
    EXPECT_EQ(door.requests[0].key, "key");
    EXPECT_EQ(door.requests[0].value, "value");
    EXPECT_EQ(door.requests[1].verb, wire::Verb::get);
    EXPECT_EQ(wire::parse_number(door.requests[2].value), -3);
  }
}

TEST(Session, ShowsOutWhoSendsAHugeLengthAnUnknownVerbOrAKeyBeyondTheFrame) {
  const std::string huge = "\xff\xff\xff\xff";
  std::string unknown = wire::request(wire::Verb::set, "k", "v"), beyond = unknown;
  unknown[4] = 99;
  beyond[5] = 100;
  for (const std::string& bytes : {huge, unknown, beyond, std::string("\1\0\0\0\0", 5)}) {
    Door door;
    EXPECT_FALSE(door.hear(door.hello() + bytes));
    EXPECT_TRUE(door.requests.empty());
  }
}

}  // namespace
}  // namespace medley
