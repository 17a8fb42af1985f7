// Stops the progress thread while it goes idle: whichever comes first, it ends. With weaker memory orders the thread
// reads a stale `stop_` while its own `idle_` is in the store buffer, and sleeps for ever; on x86 that takes less than
// 1,000 of these rounds. progress_thread.cpp is compiled against the engine in engine_that_idles/.
#include "engine/progress_thread.hpp"

#include <gtest/gtest.h>

#include "engine/engine.hpp"

namespace medley::core {
namespace {

TEST(ProgressThread, EndsWhenItIsStoppedJustAsItGoesIdle) {
  for (int round = 0; round < 5'000; ++round) {
    Engine engine(round * 7919 % 300);
    const ProgressThread thread(engine);
    while (!engine.tended()) std::this_thread::yield();
  }
}

TEST(ProgressThread, EndsWhenItIsNudgedAndStopped) {
  for (int round = 0; round < 500; ++round) {
    Engine engine(round * 7919 % 300);
    ProgressThread thread(engine);
    while (!engine.tended()) std::this_thread::yield();
    thread.nudge();
  }
}

}  // namespace
}  // namespace medley::core
