// A child forked from a rank, such as a data loader: its calls throw, and its exit does no harm.
#include "backends/shm/job.hpp"

// A forked child deliberately leaves its parent's backends alone instead of destroying its copies of them.
extern "C" __attribute__((visibility("default"))) const char* __asan_default_options();
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }

namespace medley::test {
namespace {

template <typename Call>
bool refused(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.kind() == ErrorKind::invalid && std::string(error.what()).find("forked") != std::string::npos;
  }
  return false;
}

/// What a child of a rank does with its copies; returns the number of the first check that failed, or 0.
int misuse(Context& context, Comm& world, Work& pending) {
  float value[2] = {0, 0};
  int step = 0;
  const auto check = [&](bool right) {
    ++step;
    return right;
  };
  if (!check(refused([&] { world.barrier(); }))) return step;
  if (!check(refused([&] { world.all_reduce(value, sum); }))) return step;
  if (!check(refused([&] { world.send(value, 1, {.async = true}); }))) return step;
  if (!check(refused([&] { world.sendrecv(std::span(value).first(1), 1, std::span(value).last(1), 1); }))) return step;
  if (!check(refused([&] { pending.wait(); }))) return step;
  if (!check(refused([&] { pending.test(); }))) return step;
  if (!check(refused([&] { world.abort(); }))) return step;
  if (!check(refused([&] { world.dup(); }))) return step;
  if (!check(refused([&] { static_cast<void>(context.route_decisions()); }))) return step;
  // The child's own mappings may be at the addresses of the parent's segments.
  const std::vector<char> own(32 << 20, 'x');
  pending = Work();
  world = Comm();
  { Context end = std::move(context); }
  if (!check(std::all_of(own.begin(), own.end(), [](char c) { return c == 'x'; }))) return step;
  return 0;
}

void parent_goes_on(bool child_cleans_up) {
  Job job(2, [&](int rank, const Job::Start& start) {
    Context context = start();
    Comm world = context.world();
    std::vector<float> data(1 << 20, static_cast<float>(rank)), gift(1 << 20, -1.0f);
    world.all_reduce(data, sum);
    Work pending = rank == 0 ? world.recv(gift, 1, {.async = true}) : world.send(data, 0, {.async = true});
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
      if (child_cleans_up) exit(misuse(context, world, pending));
      exit(refused([&] { world.barrier(); }) ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0) << "the child of rank " << rank;
    pending.wait();
    world.barrier();
    if (rank == 0) {
      EXPECT_EQ(gift.back(), 1.0f);
    }
  });
  for (int rank : {0, 1}) expect_success(job.wait(rank), rank);
}

TEST(Fork, ChildsCallsThrowAndItsEndHarmsNobody) { parent_goes_on(true); }
TEST(Fork, ChildThatOnlyExitsHarmsNobody) { parent_goes_on(false); }

TEST(Fork, ChildThatOutlivesItsParentDoesNotHideTheDeath) {
  const Shared<std::atomic<int>> orphan;
  Job job(2, [&](int rank, const Job::Start& start) {
    Context context = start();
    Comm world = context.world();
    world.barrier();
    if (rank == 1) {
      const pid_t child = fork();
      if (child == 0) {
        prctl(PR_SET_PDEATHSIG, 0);
        for (;;) pause();
      }
      *orphan = child;
      raise(SIGKILL);
    }
    world.barrier();
  });
  expect_error(job.wait(0), ErrorKind::rank_lost, {1}, 0);
  job.wait(1);
  if (*orphan > 0) kill(*orphan, SIGKILL);
}

}  // namespace
}  // namespace medley::test
