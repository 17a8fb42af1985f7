// Comms with messages of exact size: sizes decide routes, messages of a pair and tag keep their order over several
// lanes, and a receive of another size than its message is an error on both ends that names both sizes.
#include <gmock/gmock.h>

#include <optional>

#include "comm/refusal.hpp"
#include "harness/ranks.hpp"

namespace medley::test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr const char* by_size = "p2p:0-100=shm;p2p=plain";  // the largest small message has 100 bytes

void run_on_two(int size, const Body& body) {
  run_threads(size, body, [](ContextOptions& options) {
    options.backends = {"shm", "plain"};
    options.deadline = 20s;
  });
}

std::vector<std::uint8_t> pattern(int number, std::size_t bytes) {
  std::vector<std::uint8_t> made(bytes);
  for (std::size_t i = 0; i < bytes; ++i) made[i] = static_cast<std::uint8_t>(number * 37 + static_cast<int>(i) + 1);
  return made;
}

TEST(Exact, messages_of_one_tag_keep_their_order_over_two_lanes) {
  run_on_two(3, [](Context& context) {
    Comm comm = context.world().dup({.rules = by_size, .exact = true});
    const int next = (comm.rank() + 1) % comm.size(), previous = (comm.rank() + comm.size() - 1) % comm.size();
    const std::size_t sizes[] = {8, 5'000, 100, 101, 0, 200'000, 24, 24, 70'000, 1};
    std::vector<std::vector<std::uint8_t>> out, in;
    for (int i = 0; i < 10; ++i) out.push_back(pattern(10 * comm.rank() + i, sizes[i])), in.emplace_back(sizes[i]);
    std::vector<Work> works;
    for (int i = 0; i < 10; ++i) {
      works.push_back(comm.send(out[static_cast<std::size_t>(i)], next, {.async = true, .tag = 3}));
      works.push_back(comm.recv(in[static_cast<std::size_t>(i)], previous, {.async = true, .tag = 3}));
    }
    for (Work& work : works) work.wait();
    for (int i = 0; i < 10; ++i) {
      EXPECT_EQ(in[static_cast<std::size_t>(i)], pattern(10 * previous + i, sizes[i])) << i;
      EXPECT_EQ(works[static_cast<std::size_t>(2 * i + 1)].source(), previous);
    }
    comm.barrier();
  });
}

/// What each rank's error says after rank 0 and rank 1 called these.
void expect_sizes_named(const char* rules, const std::function<void(Comm&)>& sender,
                        const std::function<void(Comm&)>& receiver, std::initializer_list<std::string> fragments) {
  std::vector<std::optional<Error>> errors(3);
  run_on_two(3, [&](Context& context) {
    Comm comm = context.world().dup({.rules = rules, .exact = true});
    try {
      if (comm.rank() == 0) sender(comm);
      if (comm.rank() == 1) receiver(comm);
      for (;;) comm.barrier();  // until the error arrives; the deadline ends it otherwise
    } catch (const Error& error) {
      errors[static_cast<std::size_t>(comm.rank())] = error;
    }
    context.world().barrier();
  });
  for (const auto& error : errors) {
    ASSERT_TRUE(error);
    EXPECT_EQ(error->kind(), ErrorKind::mismatch) << error->what();
    for (const std::string& fragment : fragments) EXPECT_THAT(error->what(), HasSubstr(fragment));
  }
}

template <int number>
void send_bytes(Comm& comm) {
  comm.send(pattern(number, number), 1, {.tag = 5});
}
template <int number>
void receive_bytes(Comm& comm) {
  std::vector<std::uint8_t> buffer(number);
  comm.recv(buffer, 0, {.tag = 5});
}

TEST(Exact, a_shorter_message_on_the_same_lane_is_an_error_on_all_ranks) {
  for (const char* rules : {"p2p=shm", "p2p=plain"}) {
    expect_sizes_named(rules, send_bytes<40>, receive_bytes<48>,
                       {"rank 0 sent 40 bytes with tag 5", "rank 1 posted a receive of 48 bytes"});
    expect_sizes_named(rules, send_bytes<40'000>, receive_bytes<48'000>,
                       {"rank 0 sent 40000 bytes", "rank 1 posted a receive of 48000 bytes"});
  }
}

TEST(Exact, a_longer_message_on_the_same_lane_is_an_error_on_all_ranks) {
  for (const char* rules : {"p2p=shm", "p2p=plain"}) {
    expect_sizes_named(rules, send_bytes<48>, receive_bytes<40>, {"rank 0 sent 48 bytes", "40"});
    expect_sizes_named(rules, send_bytes<480'000>, receive_bytes<40>, {"rank 0 sent 480000 bytes", "40"});
  }
}

TEST(Exact, sizes_that_lead_to_different_lanes_are_an_error_on_all_ranks) {
  expect_sizes_named(by_size, send_bytes<40>, receive_bytes<48'000>,
                     {"message #1 from rank 0 to rank 1 with tag 5",
                      "rank 0 sent 40 bytes but rank 1 posted a receive of 48000 bytes"});
  expect_sizes_named(by_size, send_bytes<48'000>, receive_bytes<40>,
                     {"rank 0 sent 48000 bytes but rank 1 posted a receive of 40 bytes"});
}

TEST(Exact, two_messages_received_in_the_other_order_are_an_error_although_each_lane_matches) {
  expect_sizes_named(
      by_size,
      [](Comm& comm) {
        send_bytes<64>(comm);
        send_bytes<8>(comm);
        send_bytes<8'000>(comm);
      },
      [](Comm& comm) {
        std::vector<std::uint8_t> first(64), second(8'000), third(8);
        Work works[] = {comm.recv(first, 0, {.async = true, .tag = 5}), comm.recv(second, 0, {.async = true, .tag = 5}),
                        comm.recv(third, 0, {.async = true, .tag = 5})};
        for (Work& work : works) work.wait();  // each lane has a message of the size
      },
      {"message #2 from rank 0 to rank 1 with tag 5", "rank 0 sent 8 bytes but rank 1 posted a receive of 8000 bytes"});
}

TEST(Exact, a_backend_that_one_end_names_is_an_error_that_says_so) {
  expect_sizes_named(
      by_size,
      [](Comm& comm) {
        comm.send(pattern(1, 40), 1, {.backend = "shm", .tag = 5});  // not numbered, but the receive is
        comm.send(pattern(2, 50), 1, {.tag = 5});
      },
      [](Comm& comm) {
        std::vector<std::uint8_t> first(40), second(50);
        comm.recv(first, 0, {.tag = 5});
        comm.recv(second, 0, {.tag = 5});
      },
      {"message #1 from rank 0 to rank 1 with tag 5", "name it on both"});
}

TEST(Exact, a_deadline_that_passes_before_the_next_comparison_names_both_sizes) {
  run_on_two(2, [&](Context& context) {
    Comm comm = context.world().dup({.rules = by_size, .exact = true});
    if (comm.rank() == 0) send_bytes<40>(comm);
    context.world().barrier();
    const auto wait = [&] {
      std::vector<std::uint8_t> large(5'000);
      if (comm.rank() == 1) comm.recv(large, 0, {.deadline = 1ms, .tag = 5});
      for (;;) comm.barrier();
    };
    expect_error(ErrorKind::mismatch, {"rank 0 sent 40 bytes but rank 1 posted a receive of 5000 bytes"}, wait);
    context.world().barrier();
  });
}

TEST(Exact, a_receive_from_any_source_needs_one_route) {
  run_on_two(2, [](Context& context) {
    Comm one = context.world().dup({.rules = "p2p=plain", .exact = true});
    std::vector<int> value{one.rank()};
    if (one.rank() == 0) one.send(value, 1);
    if (one.rank() == 1) {
      EXPECT_EQ(one.recv(value, any_source).source(), 0);
    }
    Comm several = context.world().dup({.rules = by_size, .exact = true});
    expect_refused({"name the source or the backend"}, [&] { several.recv(value, any_source); });
    if (one.rank() == 0) several.send(value, 1, {.backend = "shm"});
    if (one.rank() == 1) {
      EXPECT_EQ(several.recv(value, any_source, {.backend = "shm"}).source(), 0);
    }
    context.world().barrier();
  });
}

TEST(Exact, ranks_that_declare_different_things_are_told_so) {
  run_on_two(2, [](Context& context) {
    const bool exact = context.rank() == 0;
    const std::string sentence = "rank 0 declares that messages have exact sizes but rank 1 does not";
    Comm world = context.world();
    expect_error(ErrorKind::mismatch, {sentence}, [&] { world.dup({.exact = exact}); });
    const int both[] = {0, 1};
    expect_error(ErrorKind::mismatch, {sentence}, [&] { context.make_comm("pair", both, {.exact = exact}); });
  });
  auto store = make_local_store();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      ContextOptions options = options_of(rank, 2, store);
      options.exact = rank == 1;
      expect_error(ErrorKind::mismatch, {"rank 1 declares that messages have exact sizes but rank 0 does not"},
                   [&] { const Context context(options); });
    });
  }
  for (auto& thread : threads) thread.join();
}

TEST(Exact, exactness_passes_from_the_world_to_its_comms) {
  run_threads(
      2,
      [](Context& context) {
        Comm part = context.world().dup();
        std::vector<int> value(static_cast<std::size_t>(1 + part.rank()));
        expect_error(ErrorKind::mismatch, {"rank 0 sent 4 bytes"}, [&] {
          if (part.rank() == 0) part.send(value, 1);
          if (part.rank() == 1) part.recv(value, 0);
          for (;;) part.barrier();
        });
        Comm loose = context.world().dup({.exact = false});
        if (part.rank() == 0) loose.send(value, 1);
        if (part.rank() == 1) loose.recv(value, 0);
        context.world().barrier();
      },
      [](ContextOptions& options) { options.exact = true; });
}

TEST(Exact, rules_by_size_need_exact_sizes) {
  run_on_two(2, [](Context& context) {
    expect_refused({"CommOptions::exact"}, [&] { context.world().dup({.rules = by_size}); });
    context.world().barrier();
  });
}

}  // namespace
}  // namespace medley::test
