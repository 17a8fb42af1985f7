// Deadlines for tests of the bootstrap.
#pragma once

#include <chrono>

#include "bootstrap/store.hpp"

namespace medley::test {

inline Deadline in(std::chrono::milliseconds time) { return std::chrono::steady_clock::now() + time; }

}  // namespace medley::test
