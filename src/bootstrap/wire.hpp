// The store's protocol as bytes: a mutual proof of the token, then length-prefixed requests and replies.
// Used by the client and by the server's sessions; no sockets here, so that tests and the fuzzer can drive
// it.
//
//   server -> client  greeting: magic, server's nonce
//   client -> server  hello:    magic, rank, size, client's nonce, proof
//   server -> client  verdict:  code, server's size, proof
// Both proofs cover both nonces, so that none can be replayed, and name the prover, so that none can be
// reflected. The channel is authenticated, not encrypted. Numbers are little-endian.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "bootstrap/proof.hpp"

namespace medley::wire {

inline constexpr std::string_view magic = "MEDLEY1\n";
inline constexpr std::size_t greeting_bytes = 8 + 32;
inline constexpr std::size_t hello_bytes = 8 + 4 + 4 + 32 + 32;
inline constexpr std::size_t verdict_bytes = 1 + 4 + 32;
// Far more than any rendezvous needs, far less than a corrupt length could request.
inline constexpr std::uint32_t most_frame_bytes = 1u << 30;

struct Hello {
  std::uint32_t rank = 0;
  std::uint32_t size = 0;
  Nonce nonce{};
  Proof proof{};
};

enum class Verdict : std::uint8_t { welcome, wrong_token, wrong_size };

std::string greeting(const Nonce& server);
std::optional<Nonce> parse_greeting(std::string_view bytes);

std::string hello(const std::string& token, const Nonce& server, const Nonce& client, std::uint32_t rank,
                  std::uint32_t size);
/// Empty when the bytes are not a hello.
std::optional<Hello> parse_hello(std::string_view bytes);
bool proves(const Hello& hello, const std::string& token, const Nonce& server);

std::string verdict(const std::string& token, const Nonce& server, const Nonce& client, Verdict code,
                    std::uint32_t size);
struct Answer {
  Verdict code;
  std::uint32_t size;  ///< the server's
};
/// Empty when the bytes are not a verdict or the server does not know the token (unless it says that ours is
/// wrong).
std::optional<Answer> parse_verdict(std::string_view bytes, const std::string& token, const Nonce& server,
                                    const Nonce& client);

enum class Verb : std::uint8_t { set, get, try_get, add, erase, erase_prefix };
enum class Status : std::uint8_t { value, absent, refused };

struct Request {
  Verb verb;
  std::string key;
  std::string value;
};

/// A frame's length prefix; empty when it exceeds most_frame_bytes.
std::optional<std::uint32_t> parse_length(const char* bytes);

std::string request(Verb verb, std::string_view key, std::string_view value = {});  ///< a whole frame
std::optional<Request> parse_request(std::string_view body);
std::string reply(Status status, std::string_view value = {});  ///< a whole frame

std::string number(std::int64_t value);  ///< 8 bytes
std::optional<std::int64_t> parse_number(std::string_view bytes);

}  // namespace medley::wire
