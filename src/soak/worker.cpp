#include "soak/worker.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <medley/medley.hpp>
#include <optional>

#include "device/rank_device.hpp"
#include "soak/run_program.hpp"
#include "soak/shuffled_routes.hpp"

namespace medley::soak {
namespace {

using std::chrono::steady_clock;

/// A rank's contexts: programs with a progress thread use a separate one.
class Contexts {
 public:
  explicit Contexts(const WorkerOptions& options) : options_(options) {
    if (options.generate.online) shuffled_.emplace(options.generate.backends);
  }
  Context& of(const Program& program) {
    auto& context = contexts_[program.progress_thread ? 1 : 0];
    if (!context) {
      ContextOptions given;
      given.backends = options_.generate.backends;
      given.rules = options_.generate.rules();
      given.deadline = options_.deadline;
      if (shuffled_) given.table = shuffled_->table();
      given.progress_thread = program.progress_thread                    ? UseThread::always
                              : options_.generate.memory == Memory::cuda ? UseThread::automatic
                                                                         : UseThread::never;
      if (options_.generate.memory == Memory::cuda) given.device = core::rank_device().index;
      context.emplace(given);
    }
    return *context;
  }

 private:
  const WorkerOptions& options_;
  std::optional<ShuffledRoutes> shuffled_;
  std::array<std::optional<Context>, 2> contexts_;
};

[[noreturn]] void wait_to_be_ended() {
  for (;;) pause();
}

}  // namespace

Tally work(const WorkerOptions& options, Slot* slot) {
  if (slot) slot->process = getpid();
  setenv("MEDLEY_POISON", "1", 1);  // before the first block is pooled
  Contexts contexts(options);
  Tally tally;
  const auto complain = [&](const std::exception& problem) {
    const auto* error = dynamic_cast<const Error*>(&problem);
    if (slot) slot->report(Reported::error, error ? static_cast<int>(error->kind()) : -1, problem.what());
  };
  const auto begun = steady_clock::now();
  try {
    const int ranks = contexts.of(Program()).size();
    for (std::int64_t i = 0; i < options.programs; ++i) {
      if (slot) slot->started = i + 1;
      Program program = generate(options.first + static_cast<std::uint64_t>(i), ranks, options.generate);
      if (!options.without.empty()) program = without(program, options.without);
      const auto oracle = expect(program);
      if (!oracle) throw Error(ErrorKind::invalid, "without these steps a reduction has no exact result");
      Context& context = contexts.of(program);
      const std::string wrong = run_program(context, program, *oracle, options.generate.memory, complain);
      if (!wrong.empty()) {
        ++tally.mismatches;
        if (slot) slot->report(Reported::mismatch, 0, wrong);
        if (!slot) fmt::print(stderr, "rank {}, program {}: {}\n", context.rank(), program.seed, wrong);
      }
      // All ranks agree on when to stop, and none runs ahead, so a rank's report is about this program.
      std::int32_t go_on =
          options.seconds <= 0 || steady_clock::now() - begun < std::chrono::duration<double>(options.seconds) ? 1 : 0;
      context.world().all_reduce(std::span(&go_on, 1), min);
      if (!wrong.empty() && slot) wait_to_be_ended();
      ++tally.programs;
      if (slot) slot->finished = i + 1;
      if (go_on == 0) break;
    }
  } catch (const std::exception& problem) {
    complain(problem);
    if (slot) wait_to_be_ended();
    throw;
  }
  if (slot) slot->through = 1;
  return tally;
}

}  // namespace medley::soak
