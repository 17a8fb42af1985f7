// Async small messages allocate nothing in the steady state. All heap functions are counted here, by thread.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <new>

#include "harness/ranks.hpp"

namespace {
thread_local std::size_t allocations = 0;

void* counted(std::size_t bytes, std::size_t alignment = 0) {
  ++allocations;
  void* memory = alignment == 0 ? std::malloc(bytes)
                                : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (!memory) throw std::bad_alloc();
  return memory;
}
}  // namespace

[[gnu::noinline]] void* operator new(std::size_t bytes) { return counted(bytes); }
[[gnu::noinline]] void* operator new[](std::size_t bytes) { return counted(bytes); }
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return counted(bytes, static_cast<std::size_t>(alignment));
}
[[gnu::noinline]] void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return counted(bytes, static_cast<std::size_t>(alignment));
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace medley {
namespace {

constexpr std::size_t in_flight = 8;
using Message = std::array<std::uint8_t, 24>;

/// One window of messages both ways. `receives_last`: messages arrive before their receives are posted.
void exchange(Comm& world, std::array<Message, in_flight>& out, std::array<Message, in_flight>& in,
              bool receives_last) {
  const int peer = 1 - world.rank();
  std::array<Work, 2 * in_flight> works;
  Options options;
  options.backend = "shm";
  options.async = true;
  for (const bool receive : {!receives_last, receives_last}) {
    for (std::size_t i = 0; i < in_flight; ++i) {
      // In reverse order: all but the first are kept until their receive is posted.
      options.tag = static_cast<int>(receive ? in_flight - i : i + 1);
      works[receive ? i : in_flight + i] =
          receive ? world.recv(in[i], peer, options) : world.send(out[i], peer, options);
    }
  }
  for (Work& work : works) work.wait();
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // these recycle nothing
TEST(Allocation, AsyncSmallMessagesAllocateNothingInTheLongRun) {
  for (const bool receives_last : {false, true}) {
    test::run_threads(2, [receives_last](Context& context) {
      Comm world = context.world();
      std::array<Message, in_flight> out{}, in{};
      for (int i = 0; i < 50; ++i) exchange(world, out, in, receives_last);
      int without = 0;
      // A wait that sleeps allocates, for its status board entry. One that does not sleep, or an operation, never may.
      for (int i = 0; i < 200; ++i) {
        const std::size_t before = allocations;
        exchange(world, out, in, receives_last);
        without += allocations == before ? 1 : 0;
      }
      EXPECT_GT(without, 0) << "every window allocates";
      world.barrier();
    });
  }
}
#endif

}  // namespace
}  // namespace medley
