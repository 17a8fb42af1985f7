// The little cryptography of the bootstrap: random bytes, proofs of a shared token, names made from
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

/// Compares in constant time, so that a stranger learns nothing from how long a refusal takes.
bool equal(const Proof& a, const Proof& b);

/// 32 hexadecimal digits that stand for `text`; equal texts, equal digits.
std::string digest(std::string_view text);

/// A number below `limit` made from `text`, spread evenly.
std::uint32_t spread(std::string_view text, std::uint32_t limit);

}  // namespace medley
