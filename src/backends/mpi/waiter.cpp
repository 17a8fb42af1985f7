#include "backends/mpi/waiter.hpp"

#include <algorithm>
#include <thread>

namespace medley::mpi {
namespace {

// A large transfer takes tens of round trips, each of which waits for somebody's nap.
constexpr std::chrono::nanoseconds nap = std::chrono::microseconds(50);

}  // namespace

void MpiWaiter::sleep(std::uint32_t, std::chrono::nanoseconds at_most) {
  std::this_thread::sleep_for(std::min(at_most, nap));
}

}  // namespace medley::mpi
