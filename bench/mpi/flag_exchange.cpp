// The lower bound of a 4-byte all_reduce of two ranks: each writes one word of value and sequence, and reads
// the other's. bench/mpi/compare runs it next to `medley bench`, sampled by the same clock; alone:
// flag_exchange --seconds 0.5
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bit>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "rows.hpp"

namespace medley::bench {
namespace {

/// One word per rank and parity. Two parities, because a rank may start the next exchange before the other
/// has read this one's word; it cannot start the one after.
struct Lines {
  struct alignas(128) Word {
    std::atomic<std::uint64_t> sequence_and_value{0};
  };
  Word words[2][2];
};

/// Each process on its own core, as an MPI launcher would bind it.
void pin(int rank) {
  cpu_set_t allowed, mine;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) < 2) return;
  CPU_ZERO(&mine);
  for (int core = 0, seen = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &allowed) && seen++ == rank) CPU_SET(core, &mine);
  }
  sched_setaffinity(0, sizeof mine, &mine);
}

class Exchange {
 public:
  Exchange(Lines& lines, int rank) : lines_(lines), rank_(rank) {}

  /// The sum of both ranks' values.
  float operator()(float value) {
    ++sequence_;
    auto& words = lines_.words[sequence_ % 2];
    const auto word = std::uint64_t{sequence_} << 32 | std::bit_cast<std::uint32_t>(value);
    words[rank_].sequence_and_value.store(word, std::memory_order_release);
    std::uint64_t theirs = 0;
    while ((theirs = words[1 - rank_].sequence_and_value.load(std::memory_order_acquire)) >> 32 != sequence_) {
    }
    return value + std::bit_cast<float>(static_cast<std::uint32_t>(theirs));
  }

 private:
  Lines& lines_;
  int rank_;
  std::uint32_t sequence_ = 0;
};

Measured run(tune::SampleClock& clock, Lines& lines, const MeasureOptions& options) {
  pin(clock.rank());
  clock.meet();
  Exchange exchange(lines, clock.rank());
  volatile float in = 0, out = 0;
  auto measured = measure(
      clock, options,
      [&] {
        out = -1;
        in = static_cast<float>(clock.rank() + 1);
      },
      [&] { out = exchange(in); });
  if (out != 3) throw std::runtime_error("the exchange gave a wrong sum");
  return measured;
}

void exchange_in_two_processes(const Options& options) {
  void* memory = mmap(nullptr, sizeof(Lines), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::runtime_error("no shared memory");
  auto& lines = *new (memory) Lines;
  tune::SampleClock clock = tune::SampleClock::create(2);
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("cannot start the second process");
  if (child == 0) {
    try {
      tune::SampleClock opened = tune::SampleClock::open(clock.name(), 1, 2);
      run(opened, lines, options.measure);
      _exit(0);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "flag_exchange: %s\n", error.what());
      _exit(1);
    }
  }
  const Row row{Op::all_reduce, sizeof(float), run(clock, lines, options.measure)};
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) throw std::runtime_error("the second process failed");
  write_json(options.json, "flags", "a bare flag exchange", 2, {row});
}

}  // namespace
}  // namespace medley::bench

int main(int argc, char** argv) {
  try {
    medley::bench::exchange_in_two_processes(medley::bench::parse_options(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "flag_exchange: %s\n", error.what());
    return dynamic_cast<const std::invalid_argument*>(&error) ? 2 : 1;
  }
  return 0;
}
