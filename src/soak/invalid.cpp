// The rank's side of a wrong program.
#include "soak/invalid.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <medley/medley.hpp>

#include "core/ticks.hpp"
#include "soak/random.hpp"

namespace medley::soak {
namespace {

class InvalidRank {
 public:
  InvalidRank(const InvalidPlan& plan, Comm comm)
      : plan_(plan),
        comm_(std::move(comm)),
        faulty_(comm_.rank() == plan.victim),
        values_(static_cast<std::size_t>(plan.count) + 1) {}

  /// Ends with an error on every rank but one that is killed.
  void run(Slot& slot) {
    for (int i = 0; i < plan_.before; ++i) all_reduce(plan_.count);
    slot.ready_ns = core::clock_ns(CLOCK_MONOTONIC);   // before the barrier: the fault may end the comm while others are still in it
    comm_.barrier();
    fault();
    // A rank that has noticed nothing goes on as a program would; whatever it meets must tell it.
    for (int i = 0; i < 8; ++i) comm_.barrier(options(false));
  }

 private:
  Options options(bool async) const { return {.backend = plan_.backend, .async = async}; }

  void all_reduce(std::int64_t count, DType dtype = DType::f32) {
    comm_.all_reduce(Buffer(values_.data(), count, dtype), sum, options(plan_.async)).wait();
  }

  void fault() {
    switch (plan_.fault) {
      case Fault::skipped_collective:
        if (!faulty_) all_reduce(plan_.count);
        break;
      case Fault::wrong_root:
        comm_
            .broadcast(Buffer(values_.data(), plan_.count, DType::f32), faulty_ ? 1 : 0, options(plan_.async))
            .wait();
        break;
      case Fault::swapped_order:
        if (faulty_) comm_.barrier(options(false));
        all_reduce(plan_.count);
        if (!faulty_) comm_.barrier(options(false));
        break;
      case Fault::other_count:
        all_reduce(plan_.count + (faulty_ ? 1 : 0));
        break;
      case Fault::other_type:
        all_reduce(plan_.count, faulty_ ? DType::i32 : DType::f32);
        break;
      case Fault::killed:
      case Fault::stopped:
        if (faulty_) kill(getpid(), plan_.fault == Fault::killed ? SIGKILL : SIGSTOP);
        all_reduce(plan_.count);
    }
  }

  const InvalidPlan& plan_;
  Comm comm_;
  bool faulty_;
  std::vector<float> values_;
};

}  // namespace

std::string_view name(Fault fault) {
  switch (fault) {
    case Fault::skipped_collective:
      return "skipped collective";
    case Fault::wrong_root:
      return "wrong root";
    case Fault::swapped_order:
      return "swapped order";
    case Fault::other_count:
      return "other count";
    case Fault::other_type:
      return "other type";
    case Fault::killed:
      return "killed rank";
    default:
      return "stopped rank";
  }
}

InvalidPlan plan_invalid(std::uint64_t seed, int ranks, const std::vector<std::string>& backends) {
  Random random(seed ^ 0xbad);
  InvalidPlan plan;
  plan.seed = seed;
  plan.fault = static_cast<Fault>(random.below(fault_count));
  plan.victim = random.between(0, ranks - 1);
  plan.before = random.between(0, 3);
  plan.backend = random.one_of(backends);
  plan.async = random.chance(50);
  plan.count = random.one_of<std::int64_t>({1, 100, 5'000, 200'000});
  return plan;
}

std::string to_text(const InvalidPlan& plan) {
  return fmt::format("{} on rank {} after {} collectives of {} elements over {}{}", name(plan.fault),
                     plan.victim, plan.before, plan.count, plan.backend, plan.async ? ", async" : "");
}

void work_invalid(const WorkerOptions& options, Slot& slot) {
  slot.process = getpid();
  setenv("MEDLEY_CHECK", "1", 1);
  try {
    ContextOptions given;
    given.backends = options.generate.backends;
    given.deadline = options.deadline;
    Context context(given);
    slot.started = 1;
    const InvalidPlan plan = plan_invalid(options.first, context.size(), options.generate.backends);
    InvalidRank(plan, context.world()).run(slot);
    slot.finished = 1;  // it must not come to this
  } catch (const Error& error) {
    std::string ranks;
    for (int r : error.context().ranks) ranks += fmt::format(" {}", r);
    slot.tell(Told::error, static_cast<int>(error.kind()),
              fmt::format("{} naming ranks [{} ]: {}", name(error.kind()), ranks, error.what()));
  } catch (const std::exception& error) {
    slot.tell(Told::error, -1, error.what());
  }
  for (;;) pause();  // the fault's own is the only rank that may end
}

}  // namespace medley::soak
