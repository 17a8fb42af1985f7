// A 64-bit checksum of compressed data. Every step is a bijection, so a change inside any one eight-byte word is always
// found, and any other change with a probability of 1 - 2^-64 or so. Four lanes, since a multiplication takes three
// cycles.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>

namespace medley::compress {

inline std::uint64_t checksum(std::span<const std::byte> bytes, std::uint64_t seed) {
  constexpr std::uint64_t odd = 0x9e3779b97f4a7c15u;
  const auto step = [](std::uint64_t state, std::uint64_t word) {
    state = (state ^ word) * odd;
    return state ^ (state >> 32);
  };
  std::uint64_t lanes[4] = {seed, seed + 1, seed + 2, seed + 3};
  const std::byte* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= sizeof lanes; at += sizeof lanes, left -= sizeof lanes) {
    std::uint64_t words[4];
    std::memcpy(words, at, sizeof words);
    for (int i = 0; i < 4; ++i) lanes[i] = step(lanes[i], words[i]);
  }
  std::uint64_t last[4] = {};
  if (left > 0) std::memcpy(last, at, left);
  for (int i = 0; i < 4; ++i) lanes[i] = step(lanes[i], last[i]);
  std::uint64_t all = step(seed, bytes.size());
  for (const std::uint64_t lane : lanes) all = step(all, lane);
  return all;
}

}  // namespace medley::compress
