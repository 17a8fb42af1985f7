// The bootstrap's cryptography: random bytes, proofs of a shared token, names derived from
// identities. Used by the store's handshake, by the launcher (fresh tokens) and by the environment (socket
// names).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace medley {

using Nonce = std::array<unsigned char, 32>;
using Proof = std::array<unsigned char, 32>;

Nonce random_nonce();

/// A fresh token: 32 hexadecimal digits, 128 random bits.
std::string random_token();

/// HMAC-SHA-256 of `message` under `token`.
Proof prove(const std::string& token, std::string_view message);

/// Compares in constant time, so that the duration of a refusal reveals nothing.
bool equal(const Proof& a, const Proof& b);

/// 32 hexadecimal digits derived from `text`; equal texts give equal digits.
std::string digest(std::string_view text);

/// A number below `limit` derived from `text`, evenly distributed.
std::uint32_t spread(std::string_view text, std::uint32_t limit);

}  // namespace medley
