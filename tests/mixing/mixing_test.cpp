// The programs known to hang when communication libraries are mixed without rules, each over all pairs of
// backends. docs/proofs.md says which rule keeps each of them from hanging.
//   MEDLEY_TEST_RANKS     processes (forked here, the default), threads, or launched: this is one rank of a job
//   MEDLEY_TEST_BACKENDS  those to pair; by default all that work here, mpi only when launched
#include <fmt/format.h>

#include <cstdlib>
#include <numeric>
#include <thread>

#include "comm/backend_loader.hpp"
#include "harness/ranks.hpp"

namespace medley::test {
namespace {

using namespace std::chrono_literals;

constexpr int ranks = 3;
using Pair = std::pair<std::string, std::string>;
using PairBody = std::function<void(Context&, const std::string& a, const std::string& b)>;

std::string environment(const char* variable) {
  const char* text = std::getenv(variable);
  return text ? text : "";
}
bool launched() { return environment("MEDLEY_TEST_RANKS") == "launched"; }

std::vector<std::string> backends() {
  std::vector<std::string> names;
  std::string list = environment(launched() ? "MEDLEY_BACKENDS" : "MEDLEY_TEST_BACKENDS");
  for (std::size_t at = 0; !list.empty() && at <= list.size();) {
    const std::size_t comma = std::min(list.find(',', at), list.size());
    names.push_back(list.substr(at, comma - at));
    at = comma + 1;
  }
  if (names.empty()) {
    for (const auto& known : core::known_backends()) {
      if (known->unavailable().empty() && known->name() != "mpi" && known->name() != "nccl")
        names.push_back(known->name());
    }
  }
  return names;
}

/// Runs the body for every ordered pair, including each backend with itself. A hang is an error after a
/// minute.
void over_pairs(const PairBody& body, UseThread thread = UseThread::never) {
  const std::vector<std::string> names = backends();
  const auto all_pairs = [&](Context& context) {
    for (const auto& a : names) {
      for (const auto& b : names) {
        SCOPED_TRACE(fmt::format("over {} and {}", a, b));
        body(context, a, b);
        context.world().barrier();
      }
    }
  };
  const auto adjust = [&](ContextOptions& options) {
    options.backends = names;
    options.deadline = 60s;
    options.progress_thread = thread;
  };
  if (launched()) {
    ContextOptions options;
    adjust(options);
    Context context(options);
    if (context.size() != ranks) GTEST_SKIP() << "the job has " << context.size() << " ranks, not " << ranks;
    return all_pairs(context);
  }
  if (environment("MEDLEY_TEST_RANKS") == "threads") return run_threads(ranks, all_pairs, adjust);
  run_processes(ranks, all_pairs, adjust);
}

std::vector<std::int32_t> numbers(int rank, std::size_t count = 5000) {
  std::vector<std::int32_t> values(count);
  std::iota(values.begin(), values.end(), 1000 * rank);
  return values;
}

/// Sum of all ranks' numbers() in a comm with these world ranks.
std::vector<std::int32_t> sums(std::initializer_list<int> members, std::size_t count = 5000) {
  std::vector<std::int32_t> total(count);
  for (int r : members) {
    const auto own = numbers(r, count);
    for (std::size_t i = 0; i < count; ++i) total[i] += own[i];
  }
  return total;
}

TEST(Mixing, three_comms_in_a_cycle_issued_async_on_disjoint_buffers) {
  over_pairs([](Context& context, const std::string& a, const std::string& b) {
    const int me = context.rank();
    Comm world = context.world();
    // Each pair of ranks has a comm; every rank issues the one with its successor first.
    Comm with_next, with_previous;
    for (int first = 0; first < ranks; ++first) {
      Comm made = world.subset({first, (first + 1) % ranks});
      if (made && first == me) with_next = made;
      if (made && first != me) with_previous = made;
    }
    // The comm of ranks 2 and 0 is on the other backend.
    const std::string to_next = me == 2 ? b : a, to_previous = me == 0 ? b : a;
    auto one = numbers(me), two = numbers(me);
    Work next = with_next.all_reduce(one, sum, {.backend = to_next, .async = true});
    Work previous = with_previous.all_reduce(two, sum, {.backend = to_previous, .async = true});
    next.wait();
    previous.wait();
    EXPECT_EQ(one, sums({me, (me + 1) % ranks}));
    EXPECT_EQ(two, sums({me, (me + 2) % ranks}));
  });
}

TEST(Mixing, irecv_then_isend_on_one_pair) {
  over_pairs([](Context& context, const std::string& a, const std::string& b) {
    if (context.rank() == 2) return;
    Comm world = context.world();
    const int me = context.rank(), peer = 1 - me;
    for (std::size_t count : {std::size_t{3}, std::size_t{300'000}}) {  // eager and by rendezvous
      const auto out = numbers(me, count);
      std::vector<std::int32_t> in(count), in_too(count);
      Work receives = world.recv(in, peer, {.backend = a, .async = true, .tag = 1});
      Work receives_too = world.recv(in_too, peer, {.backend = b, .async = true, .tag = 2});
      Work sends = world.send(out, peer, {.backend = a, .async = true, .tag = 1});
      Work sends_too = world.send(out, peer, {.backend = b, .async = true, .tag = 2});
      receives.wait();
      sends_too.wait();
      receives_too.wait();
      sends.wait();
      EXPECT_EQ(in, numbers(peer, count));
      EXPECT_EQ(in_too, numbers(peer, count));
    }
  });
}

TEST(Mixing, two_libraries_interleaved_from_two_threads) {
  over_pairs([](Context& context, const std::string& a, const std::string& b) {
    Comm world = context.world(), twin = world.dup();
    const auto work = [&](Comm comm, const std::string& first, const std::string& second) {
      for (int i = 0; i < 10; ++i) {
        auto values = numbers(context.rank());
        comm.all_reduce(values, sum, {.backend = i % 2 == 0 ? first : second});
        EXPECT_EQ(values, sums({0, 1, 2}));
      }
    };
    std::thread other([&] { work(twin, b, a); });
    work(world, a, b);
    other.join();
  });
}

TEST(Mixing, a_split_on_one_rank_while_another_waits_for_an_operation_of_a_third_library) {
  over_pairs([](Context& context, const std::string& a, const std::string& b) {
    Comm world = context.world();
    const int me = context.rank();
    auto values = numbers(me);
    std::vector<std::int32_t> in(values.size());
    // Rank 0 is in the split while rank 1 waits for data that only rank 0's engine can send; rank 2 is ahead
    // of both.
    Work early = me == 0 ? world.send(values, 1, {.backend = b, .async = true, .tag = 3}) : Work();
    if (me == 1) {
      world.recv(in, 0, {.backend = b, .tag = 3});
      EXPECT_EQ(in, numbers(0));
    }
    Comm half = world.split(me == 2 ? 1 : 0);
    early.wait();
    half.all_reduce(values, sum, {.backend = a});
    EXPECT_EQ(values, me == 2 ? numbers(2) : sums({0, 1}));
  });
}

TEST(Mixing, an_all_reduce_whose_input_is_written_by_an_unfinished_receive_of_another_library) {
  over_pairs([](Context& context, const std::string& a, const std::string& b) {
    Comm world = context.world();
    const int me = context.rank();
    std::vector<std::int32_t> input(5000, -1), output(5000);
    const auto given = numbers((me + 2) % ranks);
    // Receive, reduce and send back are all issued before the message is sent.
    const auto own = numbers(me);
    Work receives = world.recv(input, (me + 2) % ranks, {.backend = a, .async = true, .tag = 4});
    Work reduces = world.all_reduce(input, output, sum, {.backend = b, .async = true});
    Work sends = world.send(own, (me + 1) % ranks, {.backend = a, .async = true, .tag = 4});
    reduces.wait();
    EXPECT_EQ(input, given);
    EXPECT_EQ(output, sums({0, 1, 2}));
    receives.wait();
    sends.wait();
  });
}

TEST(Mixing, a_send_that_must_not_queue_behind_a_collective_that_is_held_back) {
  over_pairs([](Context& context, const std::string& a, const std::string& b) {
    Comm world = context.world();
    const int me = context.rank();
    std::vector<std::int32_t> input(5000), output(5000);
    auto token = numbers(7, 10);
    if (me == 0) {
      Work receives = world.recv(input, 1, {.backend = a, .async = true, .tag = 5});
      Work reduces = world.all_reduce(input, output, sum, {.backend = b, .async = true});  // blocked by the receive
      Work sends = world.send(token, 1, {.backend = b, .async = true, .tag = 6});
      reduces.wait();
      sends.wait();
      EXPECT_EQ(input, numbers(1));
    } else {
      if (me == 1) {
        std::vector<std::int32_t> got(10);
        world.recv(got, 0, {.backend = b, .tag = 6});  // only then does rank 0 get what its reduction waits for
        EXPECT_EQ(got, token);
        world.send(numbers(1), 0, {.backend = a, .tag = 5});
      }
      input = numbers(me);
      world.all_reduce(input, output, sum, {.backend = b});
    }
    EXPECT_EQ(output, sums({1, 1, 2}));
  });
}

TEST(Mixing, an_eager_send_that_nobody_progresses_afterwards) {
  over_pairs([](Context& context, const std::string& a, const std::string& b) {
    Comm world = context.world();
    std::vector<std::int32_t> token = numbers(3, 4), got(4);
    if (context.rank() == 0)
      world.send(token, 1, {.backend = a, .tag = 7});  // may be complete before the data has left
    if (context.rank() == 1) {
      world.recv(got, 0, {.backend = a, .tag = 7});
      EXPECT_EQ(got, token);
    }
    world.barrier({.backend = b});  // rank 0 waits here, in another library
  });
}

TEST(Mixing, host_synchronisation_after_an_operation_that_nobody_waits_for) {
  // Like .item() on a tensor that a background operation writes: the program makes no further Medley call, a
  // thread progresses the operation.
  over_pairs(
      [](Context& context, const std::string& a, const std::string& b) {
        Comm world = context.world();
        auto values = numbers(context.rank()), more = numbers(context.rank());
        Work first = world.all_reduce(values, sum, {.backend = a, .async = true});
        Work second = world.all_reduce(more, sum, {.backend = b, .async = true});
        while (!first.complete() || !second.complete()) std::this_thread::yield();  // makes no progress
        EXPECT_EQ(values, sums({0, 1, 2}));
        EXPECT_EQ(more, sums({0, 1, 2}));
      },
      UseThread::always);
}

}  // namespace
}  // namespace medley::test
