#include "cost/on_all_cores.hpp"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace medley::cost {

void on_all_cores(std::size_t count, const std::function<void(std::size_t)>& work,
                  const std::function<void(std::size_t, std::size_t)>& progress) {
  std::atomic<std::size_t> next{0};
  const auto loop = [&](bool tells) {
    for (std::size_t i = next++; i < count; i = next++) {
      work(i);
      if (tells) progress(i + 1, count);
    }
  };
  std::vector<std::jthread> threads;
  const std::size_t cores = std::max(1u, std::thread::hardware_concurrency());
  for (std::size_t i = 1; i < std::min(cores, count); ++i) threads.emplace_back(loop, false);
  try {
    loop(static_cast<bool>(progress));
  } catch (...) {
    next = count;  // the other threads end after their piece
    throw;
  }
}

}  // namespace medley::cost
