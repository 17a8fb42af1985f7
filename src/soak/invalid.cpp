// Runs one rank of a wrong program.
#include "soak/invalid.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <medley/medley.hpp>
#include <stdexcept>
#include <thread>

#include "base/random.hpp"
#include "base/ticks.hpp"
#include "soak/guarded_bytes.hpp"

namespace medley::soak {
namespace {

using namespace std::chrono_literals;

constexpr auto short_deadline = 150ms, lateness = 400ms;

class InvalidRank {
 public:
  InvalidRank(const InvalidPlan& plan, Comm comm)
      : plan_(plan),
        comm_(plan.fault == Fault::other_size ? comm.dup({.rules = plan.rules, .exact = true}) : std::move(comm)),
        beside_(survives(plan.fault) ? comm_.dup() : Comm()),
        faulty_(comm_.rank() == plan.victim),
        values_(static_cast<std::size_t>(plan.count) + 1) {}

  /// Ends with an error on every rank except one that is killed.
  void run(Slot& slot) {
    for (int i = 0; i < plan_.before; ++i) all_reduce(plan_.count);
    // Before the barrier: the fault may end the comm while others are in it
    slot.ready_ns = core::clock_ns(CLOCK_MONOTONIC);
    comm_.barrier();
    try {
      fault();
      // A rank that has seen no error continues as a program would; its next operations must report the
      // error.
      for (int i = 0; i < 8; ++i) comm_.barrier(options(false));
    } catch (const Error&) {
      slot.noticed_ns = core::clock_ns(CLOCK_MONOTONIC);
      if (survives(plan_.fault)) go_on_beside();
      throw;
    }
  }

 private:
  Options options(bool async) const { return {.backend = plan_.backend, .async = async}; }

  /// The program continues on another comm of the same library and allocates memory, some of which Medley has
  /// just freed. Late data of the failed operation must land in neither.
  void go_on_beside() {
    const std::vector<std::byte> pattern(values_.size() * 8, std::byte{0x11});
    std::vector<std::vector<std::byte>> heap;  // of the sizes that Medley's own memory had
    for (std::size_t i = 0; i < 8; ++i) {
      for (const std::size_t width : {1, 2, 4, 8}) heap.emplace_back(values_.size() * width, std::byte{0x11});
    }
    GuardedBytes guarded(pattern);
    std::vector<bf16> ones(static_cast<std::size_t>(plan_.count));
    for (int round = 0; round < 20; ++round) {
      std::fill(ones.begin(), ones.end(), bf16{0x3f80});
      beside_.all_reduce(ones, sum, options(round % 2 == 1)).wait();
      const bf16 expected = sum_of_ones(beside_.size());
      for (const bf16 found : ones) require(found.bits == expected.bits, "the result of another comm is wrong");
    }
    for (const auto& block : heap) {
      require(std::equal(block.begin(), block.end(), pattern.begin()), "memory of the program was overwritten");
    }
    require(std::ranges::equal(guarded.all(), pattern) && guarded.intact(),
            "guarded memory of the program was overwritten");
  }
  static bf16 sum_of_ones(int ranks) {  // exact for every number of ranks that can be started here
    const auto value = static_cast<float>(ranks);
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    return bf16{static_cast<std::uint16_t>(bits >> 16)};
  }
  static void require(bool holds, const char* otherwise) {
    if (!holds) throw std::runtime_error(fmt::format("after the failure: {}", otherwise));
  }

  Work begin_all_reduce(const Options& how) {
    return comm_.all_reduce(Buffer(values_.data(), plan_.count, plan_.filled_in ? DType::bf16 : DType::f32), sum, how);
  }

  void all_reduce(std::int64_t count, DType dtype = DType::f32) {
    comm_.all_reduce(Buffer(values_.data(), count, dtype), sum, options(plan_.async)).wait();
  }

  void fault() {
    switch (plan_.fault) {
      case Fault::skipped_collective:
        if (!faulty_) all_reduce(plan_.count);
        break;
      case Fault::wrong_root:
        comm_.broadcast(Buffer(values_.data(), plan_.count, DType::f32), faulty_ ? 1 : 0, options(plan_.async)).wait();
        break;
      case Fault::swapped_order:
        if (faulty_) comm_.barrier(options(false));
        all_reduce(plan_.count);
        if (!faulty_) comm_.barrier(options(false));
        break;
      case Fault::other_count: all_reduce(plan_.count + (faulty_ ? 1 : 0)); break;
      case Fault::other_type: all_reduce(plan_.count, faulty_ ? DType::i32 : DType::f32); break;
      case Fault::other_size: exchange_sizes(); break;
      case Fault::killed:
      case Fault::stopped:
        if (faulty_) kill(getpid(), plan_.fault == Fault::killed ? SIGKILL : SIGSTOP);
        all_reduce(plan_.count);
        break;
      case Fault::aborted: {
        const bool aborts = comm_.rank() == (plan_.victim + 1) % comm_.size();
        Work work = begin_all_reduce(options(true));
        if (faulty_) std::this_thread::sleep_for(lateness);  // it has sent its RTS and makes no progress on the data
        if (aborts) work.wait_for(20ms);
        if (aborts) comm_.abort();
        return work.wait();
      }
      case Fault::late: {
        if (faulty_ && !plan_.async) std::this_thread::sleep_for(lateness);
        Work work = begin_all_reduce({.backend = plan_.backend, .async = true, .deadline = short_deadline});
        if (faulty_ && plan_.async) std::this_thread::sleep_for(lateness);
        return work.wait();
      }
    }
  }

  /// A right message, then one whose receive is larger or smaller by one element.
  void exchange_sizes() {
    const int receiver = (plan_.victim + 1) % comm_.size();
    for (const std::int64_t more : {0, 1}) {
      const bool larger = plan_.before % 2 == 0;  // on either side
      const Buffer sent(values_.data(), plan_.count + (larger ? 0 : more), DType::f32),
          posted(values_.data(), plan_.count + (larger ? more : 0), DType::f32);
      const Options how{.async = plan_.async, .tag = 7};
      if (faulty_) comm_.send(sent, receiver, how).wait();
      if (comm_.rank() == receiver) comm_.recv(posted, plan_.victim, how).wait();
    }
  }

  const InvalidPlan& plan_;
  Comm comm_;
  Comm beside_;  ///< must stay undisturbed
  bool faulty_;
  std::vector<float> values_;
};

}  // namespace

std::string_view name(Fault fault) {
  switch (fault) {
    case Fault::skipped_collective: return "skipped collective";
    case Fault::wrong_root: return "wrong root";
    case Fault::swapped_order: return "swapped order";
    case Fault::other_count: return "other count";
    case Fault::other_type: return "other type";
    case Fault::killed: return "killed rank";
    case Fault::aborted: return "abort with data in flight";
    case Fault::late: return "rank after the deadline";
    case Fault::other_size: return "message of another size";
    default: return "stopped rank";
  }
}

InvalidPlan plan_invalid(std::uint64_t seed, int ranks, const std::vector<std::string>& backends) {
  core::Random random(seed ^ 0xbad);
  InvalidPlan plan;
  plan.seed = seed;
  plan.fault = static_cast<Fault>(random.below(fault_count));
  plan.victim = random.between(0, ranks - 1);
  plan.before = random.between(0, 3);
  plan.backend = random.one_of(backends);
  plan.async = random.chance(50);
  plan.count = random.one_of<std::int64_t>({1, 100, 5'000, 200'000});
  if (survives(plan.fault)) {
    // Sizes that libraries send in several steps. Check mode is off: it would keep a late rank's data from
    // being sent.
    plan.count = random.one_of<std::int64_t>({100, 5'000, 8'000, 16'000, 200'000});
    plan.filled_in = random.chance(80);
    plan.checked = random.chance(15);
    plan.async = random.chance(80);
  }
  if (!survives(plan.fault) && random.chance(12)) {
    plan.fault = Fault::other_size;
    const std::int64_t border = plan.count * 4;  // the larger of the two sizes lies beyond it
    plan.rules = fmt::format("p2p:0-{}={};p2p={}", border, random.one_of(backends), random.one_of(backends));
  }
  return plan;
}

bool survives(Fault fault) { return fault == Fault::aborted || fault == Fault::late; }

std::string to_text(const InvalidPlan& plan) {
  return fmt::format("{} on rank {} after {} collectives of {} elements over {}{}{}{}", name(plan.fault), plan.victim,
                     plan.before, plan.count, plan.backend, plan.async ? ", async" : "",
                     survives(plan.fault) && plan.filled_in ? ", bf16" : "", plan.checked ? ", check mode" : "") +
         (plan.rules.empty() ? "" : ", rules " + plan.rules);
}

namespace {

void report_error(Slot& slot, const Error& error) {
  std::string named;
  for (int r : error.context().ranks) named += fmt::format(" {}", r);
  slot.report(Reported::error, static_cast<int>(error.kind()),
              fmt::format("{} naming ranks [{} ]: {}", name(error.kind()), named, error.what()));
}

}  // namespace

void work_invalid(const WorkerOptions& options, int ranks, Slot& slot) {
  slot.process = getpid();
  try {
    ContextOptions given;
    given.backends = options.generate.backends;
    given.deadline = options.deadline;
    const InvalidPlan plan = plan_invalid(options.first, ranks, options.generate.libraries());
    setenv("MEDLEY_CHECK", plan.checked ? "1" : "0", 1);
    setenv("MEDLEY_POISON", "1", 1);
    Context context(given);
    slot.started = 1;
    try {
      InvalidRank(plan, context.world()).run(slot);
      slot.finished = 1;
    } catch (const Error& error) {
      // Here, because destroying a context whose peer is stopped may take longer than an error may
      report_error(slot, error);
    }
  } catch (const Error& error) {
    report_error(slot, error);
  } catch (const std::exception& error) {
    slot.report(Reported::error, -1, error.what());
  }
  for (;;) pause();  // only the faulty rank may exit
}

}  // namespace medley::soak
