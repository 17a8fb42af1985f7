// The grid of failures: operations, sizes, victims and moments, with a rank killed or stopped. Every survivor
// must end with the right error in time, on every backend (MEDLEY_BACKENDS), and nothing may be left behind.
#include <algorithm>
#include <filesystem>
#include <set>
#include <tuple>

#include "backends/shm/job.hpp"
#include "backends/shm/ways.hpp"

namespace medley::test {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr int ranks = 3;

enum class Moment { before, start, inside, after };
constexpr const char* moment_names[] = {"Before", "AtTheStart", "Inside", "After"};

using Case = std::tuple<Way, int /* bytes */, int /* victim */, Moment>;

std::string label(const testing::TestParamInfo<Case>& info) {
  const auto [way, bytes, victim, moment] = info.param;
  return std::string(way_names[static_cast<int>(way)]) + std::to_string(bytes) + "Rank" + std::to_string(victim) +
         moment_names[static_cast<int>(moment)];
}

/// Every rank must know within a second; a busy machine gets more time unless the environment says that it is
/// idle.
std::chrono::milliseconds allowance() {
  const char* calm = std::getenv("MEDLEY_TEST_CALM");
  return calm && std::string(calm) == "1" ? 1000ms : 10'000ms;
}

std::set<std::string> left_in_shared_memory() {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
    const std::string name = entry.path().filename();
    if (name.starts_with("medley") || name.starts_with("ucx")) names.insert(name);
  }
  return names;
}

/// A job whose victim is lost in its second operation, with the times of the loss and of the survivors'
/// errors.
class Grid : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override { before_ = left_in_shared_memory(); }
  /// Names of concurrent jobs appear and vanish (UCX makes and removes one at once); what is left behind
  /// stays.
  void TearDown() override {
    std::set<std::string> suspects = left_in_shared_memory();
    for (const std::string& name : before_) suspects.erase(name);
    for (int looks = 0; looks < 300 && !suspects.empty(); ++looks) {
      usleep(10'000);
      const std::set<std::string> now = left_in_shared_memory();
      std::erase_if(suspects, [&](const std::string& name) { return !now.contains(name); });
    }
    EXPECT_TRUE(suspects.empty()) << *suspects.begin() << " was left in /dev/shm";
  }

  /// `signal`: the signal to the victim. `timeout`: of each wait.
  void body(int rank, const Job::Start& start_context, int signal, std::chrono::nanoseconds timeout) {
    const auto [way, bytes, victim, moment] = GetParam();
    Context context = start_context();
    Comm world = context.world();
    const auto floats = static_cast<std::size_t>(std::max(bytes / 4, ranks) / ranks * ranks);
    std::vector<float> in(floats, 1.0f), out(in);
    for (Work& work : start(world, way, victim, in, out)) work.wait();
    world.barrier();
    const auto strike = [&, now = moment](Moment when) {
      if (rank != victim || when != now) return;
      times_[rank] = steady_clock::now();
      raise(signal);
    };
    try {
      strike(Moment::before);
      if (rank != victim) times_[rank] = steady_clock::now();
      auto second = start(world, way, victim, in, out);
      strike(Moment::start);
      for (int i = 0; i < 3 && rank == victim; ++i) second.front().test();
      strike(Moment::inside);
      for (Work& work : second) work.wait(timeout);
      strike(Moment::after);
      world.barrier({.deadline = timeout});  // operations that do not need the victim may succeed, this one cannot
    } catch (const Error&) {
      if (rank != victim) took_[rank] = steady_clock::now();
      throw;
    }
  }

  void report(const char* what, std::chrono::nanoseconds longest) {
    RecordProperty("longest_ms", static_cast<int>(longest / 1ms));
    std::printf("%s after %ld ms at most\n", what, static_cast<long>(longest / 1ms));
  }

  Shared<steady_clock::time_point> times_{ranks};  ///< the victim's end, the others' last start
  Shared<steady_clock::time_point> took_{ranks};   ///< their errors

 private:
  std::set<std::string> before_;
};

class Killed : public Grid {};
class Stopped : public Grid {};

TEST_P(Killed, is_told_to_every_survivor_at_once) {
  const int victim = std::get<2>(GetParam());
  Job job(ranks, [&](int rank, const Job::Start& start) { body(rank, start, SIGKILL, 60s); });
  std::chrono::nanoseconds longest{};
  for (int rank = 0; rank < ranks; ++rank) {
    const Ending ending = job.wait(rank);
    if (rank == victim) continue;
    expect_error(ending, ErrorKind::rank_lost, {victim}, rank);
    longest = std::max<std::chrono::nanoseconds>(longest, took_[rank] - times_[victim]);
  }
  EXPECT_LE(longest, allowance());
  report("told", longest);
}

// The deadline of a second starts with an operation that the stopped rank may have started to take part in.
TEST_P(Stopped, is_a_timeout_that_names_the_stopped_rank) {
  const int victim = std::get<2>(GetParam());
  constexpr auto deadline = 1s;
  Job job(ranks, [&](int rank, const Job::Start& start) { body(rank, start, SIGSTOP, deadline); });
  std::chrono::nanoseconds longest{};
  for (int rank = 0; rank < ranks; ++rank) {
    if (rank == victim) continue;
    const Ending ending = job.wait(rank);
    expect_error(ending, ErrorKind::timeout, {victim}, rank);
    longest = std::max<std::chrono::nanoseconds>(longest, took_[rank] - times_[rank]);
  }
  // The first rank to time out notifies the others, which may have started to wait a little later.
  EXPECT_GE(longest, deadline) << "some rank did not wait for its deadline";
  EXPECT_LE(longest, deadline + allowance());
  report("timed out", longest);
  kill(job.process(victim), SIGCONT);  // it finds the comm aborted
  const Ending late = job.wait(victim);
  EXPECT_FALSE(late.hung);
  EXPECT_TRUE(late.kind == ErrorKind::timeout || late.kind == ErrorKind::rank_lost) << late.status << late.what;
}

TEST(KilledRank, while_a_comm_is_made_is_told_to_every_survivor) {
  for (const int victim : {0, 1}) {
    Job job(ranks, [&](int rank, const Job::Start& start_context) {
      Context context = start_context();
      Comm world = context.world();
      world.barrier();
      if (rank == victim) raise(SIGKILL);
      world.dup();
    });
    for (int rank = 0; rank < ranks; ++rank) {
      const Ending ending = job.wait(rank);
      if (rank != victim) expect_error(ending, ErrorKind::rank_lost, {victim}, rank);
    }
  }
}

using testing::Combine;
using testing::Values;

// A representative few, in every run of the tests.
INSTANTIATE_TEST_SUITE_P(some, Killed,
                         Combine(Values(Way::all_reduce, Way::messages), Values(8, 4 << 20), Values(0, 2),
                                 Values(Moment::before, Moment::inside, Moment::after)),
                         label);
INSTANTIATE_TEST_SUITE_P(few, Killed,
                         Combine(Values(Way::broadcast, Way::all_to_all, Way::gather), Values(64 << 10), Values(0, 1),
                                 Values(Moment::inside)),
                         label);
INSTANTIATE_TEST_SUITE_P(some, Stopped,
                         Combine(Values(Way::all_reduce), Values(8, 4 << 20), Values(0, 2), Values(Moment::before)),
                         label);

// All of it.
INSTANTIATE_TEST_SUITE_P(all, Killed,
                         Combine(Values(Way::all_reduce, Way::broadcast, Way::all_to_all, Way::reduce_scatter,
                                        Way::gather, Way::barrier, Way::messages),
                                 Values(8, 64 << 10, 4 << 20), Values(0, 1, 2),
                                 Values(Moment::before, Moment::start, Moment::inside, Moment::after)),
                         label);
INSTANTIATE_TEST_SUITE_P(all, Stopped,
                         Combine(Values(Way::all_reduce, Way::broadcast, Way::all_to_all, Way::reduce_scatter,
                                        Way::messages),
                                 Values(8, 64 << 10, 4 << 20), Values(0, 1, 2), Values(Moment::before)),
                         label);

}  // namespace
}  // namespace medley::test
