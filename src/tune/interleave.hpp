// The order of the candidates in a round: different in every round, the same on all ranks. In a fixed
// order, the candidate after a backend with threads would pay for what those threads still do.
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
