#include "bootstrap/wire.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <medley/error.hpp>

namespace medley::wire {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they lie in memory");

template <typename T>
void put(std::string& into, const T& value) {
  into.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Removes a value from the front; the caller has checked the length.
template <typename T>
T take(std::string_view& from) {
  T value;
  std::memcpy(&value, from.data(), sizeof value);
  from.remove_prefix(sizeof value);
  return value;
}

template <typename... Parts>
Proof proof_of(const std::string& token, const char* who, const Parts&... parts) {
  std::string message = who;
  (put(message, parts), ...);
  return prove(token, message);
}

std::string frame(std::string_view head, std::string_view key, std::string_view rest) {
  const std::size_t length = head.size() + key.size() + rest.size();
  if (length > most_frame_bytes) throw Error(ErrorKind::invalid, "a store's key and value may take 1 GiB at most");
  std::string out;
  out.reserve(sizeof(std::uint32_t) + length);
  put(out, static_cast<std::uint32_t>(length));
  out.append(head).append(key).append(rest);
  return out;
}

}  // namespace

std::string greeting(const Nonce& server) {
  std::string out(magic);
  put(out, server);
  return out;
}

std::optional<Nonce> parse_greeting(std::string_view bytes) {
  if (bytes.size() != greeting_bytes || !bytes.starts_with(magic)) return std::nullopt;
  bytes.remove_prefix(magic.size());
  return take<Nonce>(bytes);
}

std::string hello(const std::string& token, const Nonce& server, const Nonce& client, std::uint32_t rank,
                  std::uint32_t size) {
  std::string out(magic);
  put(out, rank);
  put(out, size);
  put(out, client);
  put(out, proof_of(token, "client", server, client, rank, size));
  return out;
}

std::optional<Hello> parse_hello(std::string_view bytes) {
  if (bytes.size() != hello_bytes || !bytes.starts_with(magic)) return std::nullopt;
  bytes.remove_prefix(magic.size());
  Hello out;
  out.rank = take<std::uint32_t>(bytes);
  out.size = take<std::uint32_t>(bytes);
  out.nonce = take<Nonce>(bytes);
  out.proof = take<Proof>(bytes);
  return out;
}

bool proves(const Hello& hello, const std::string& token, const Nonce& server) {
  return equal(hello.proof, proof_of(token, "client", server, hello.nonce, hello.rank, hello.size));
}

std::string verdict(const std::string& token, const Nonce& server, const Nonce& client, Verdict code,
                    std::uint32_t size) {
  std::string out;
  put(out, code);
  put(out, size);
  // The server proves nothing to a client that does not know the token.
  put(out, code == Verdict::wrong_token ? Proof{} : proof_of(token, "server", client, server, code, size));
  return out;
}

std::optional<Answer> parse_verdict(std::string_view bytes, const std::string& token, const Nonce& server,
                                    const Nonce& client) {
  if (bytes.size() != verdict_bytes) return std::nullopt;
  const auto code = take<std::uint8_t>(bytes);
  const auto size = take<std::uint32_t>(bytes);
  const auto proof = take<Proof>(bytes);
  if (code > static_cast<std::uint8_t>(Verdict::wrong_size)) return std::nullopt;
  const Answer answer{static_cast<Verdict>(code), size};
  if (answer.code == Verdict::wrong_token) return answer;
  if (!equal(proof, proof_of(token, "server", client, server, answer.code, size))) return std::nullopt;
  return answer;
}

std::optional<std::uint32_t> parse_length(const char* bytes) {
  std::uint32_t length = 0;
  std::memcpy(&length, bytes, sizeof length);
  return length > most_frame_bytes ? std::nullopt : std::optional(length);
}

std::string request(Verb verb, std::string_view key, std::string_view value) {
  std::string head;
  put(head, verb);
  put(head, static_cast<std::uint32_t>(std::min<std::size_t>(key.size(), most_frame_bytes)));
  return frame(head, key, value);
}

std::optional<Request> parse_request(std::string_view body) {
  if (body.size() < 1 + sizeof(std::uint32_t)) return std::nullopt;
  const auto verb = take<std::uint8_t>(body);
  const auto key_bytes = take<std::uint32_t>(body);
  if (verb > static_cast<std::uint8_t>(Verb::erase_prefix) || key_bytes > body.size()) return std::nullopt;
  return Request{static_cast<Verb>(verb), std::string(body.substr(0, key_bytes)), std::string(body.substr(key_bytes))};
}

std::string reply(Status status, std::string_view value) {
  std::string head;
  put(head, status);
  return frame(head, value, {});
}

std::string number(std::int64_t value) {
  std::string out;
  put(out, value);
  return out;
}

std::optional<std::int64_t> parse_number(std::string_view bytes) {
  if (bytes.size() != sizeof(std::int64_t)) return std::nullopt;
  return take<std::int64_t>(bytes);
}

}  // namespace medley::wire
