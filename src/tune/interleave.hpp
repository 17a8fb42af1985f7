// In which order candidates take their turns in a round: another one in every round, the same on all ranks. Always in one
// order, the one behind a backend with threads of its own would pay for what these still do.
#pragma once

#include <numeric>
#include <vector>

#include "base/random.hpp"

namespace medley::tune {

inline std::vector<std::size_t> interleaved_order(std::size_t candidates, std::size_t round) {
  std::vector<std::size_t> order(candidates);
  std::iota(order.begin(), order.end(), std::size_t{0});
  core::Random(round).shuffle(order);
  return order;
}

}  // namespace medley::tune
