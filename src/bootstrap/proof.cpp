#include "bootstrap/proof.hpp"

#include <fmt/format.h>
#include <sodium.h>

#include <cstring>
#include <medley/error.hpp>

namespace medley {
namespace {

void start_sodium() {
  if (sodium_init() < 0) throw Error(ErrorKind::system, "libsodium cannot start: no source of random bytes");
}

std::string hexadecimal(const unsigned char* bytes, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += fmt::format("{:02x}", bytes[i]);
  return text;
}

std::array<unsigned char, 16> hash(std::string_view text) {
  std::array<unsigned char, 16> out{};
  crypto_generichash(out.data(), out.size(), reinterpret_cast<const unsigned char*>(text.data()), text.size(), nullptr,
                     0);
  return out;
}

}  // namespace

Nonce random_nonce() {
  start_sodium();
  Nonce nonce;
  randombytes_buf(nonce.data(), nonce.size());
  return nonce;
}

std::string random_token() { return hexadecimal(random_nonce().data(), 16); }

Proof prove(const std::string& token, std::string_view message) {
  Proof proof;
  crypto_auth_hmacsha256_state state;
  crypto_auth_hmacsha256_init(&state, reinterpret_cast<const unsigned char*>(token.data()), token.size());
  crypto_auth_hmacsha256_update(&state, reinterpret_cast<const unsigned char*>(message.data()), message.size());
  crypto_auth_hmacsha256_final(&state, proof.data());
  return proof;
}

bool equal(const Proof& a, const Proof& b) { return sodium_memcmp(a.data(), b.data(), a.size()) == 0; }

std::string digest(std::string_view text) {
  const auto bytes = hash(text);
  return hexadecimal(bytes.data(), bytes.size());
}

std::uint32_t spread(std::string_view text, std::uint32_t limit) {
  std::uint64_t number = 0;
  std::memcpy(&number, hash(text).data(), sizeof number);
  return static_cast<std::uint32_t>(number % limit);
}

}  // namespace medley
