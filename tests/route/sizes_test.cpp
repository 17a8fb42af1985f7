// v-collectives whose counts differ between ranks: all ranks take the same route, by the sizes that they exchanged,
// as the record shows; and none hangs.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <medley/scope.hpp>
#include <numeric>
#include <optional>

#include "comm/backend_loader.hpp"
#include "engine/size_agreement.hpp"
#include "harness/ranks.hpp"
#include "harness/traced.hpp"
#include "trace/trace.hpp"

namespace medley {
namespace {

using core::nominal_v_bytes;
using core::SizeWindow;
using ::testing::HasSubstr;
using Counts = std::vector<std::int64_t>;
using Table = std::vector<Counts>;  ///< [from][to]

constexpr int ranks = 3;
constexpr std::int64_t border = 1 << 12;
const std::string by_size =
    "all_to_allv:0-4K=shm;all_to_allv=plain;gatherv:0-4K=plain;gatherv=shm;scatterv:0-4K=shm;scatterv=plain";

/// Tokens to experts: one expert is popular, sizes vary, and most ranks alone could not tell on which side of the
/// threshold the operation is.
Table tokens_of(int step) {
  Table table(ranks, Counts(ranks));
  for (int from = 0; from < ranks; ++from) {
    for (int to = 0; to < ranks; ++to) {
      const int crowd = step % 3 == 0 ? 1 : step % 7 == 0 ? 0 : 40;
      table[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)] =
          to == step % ranks ? 10 * crowd + from : (step + from) % 3;
    }
  }
  return table;
}

Counts column(const Table& table, int to) {
  Counts counts;
  for (const Counts& row : table) counts.push_back(row[static_cast<std::size_t>(to)]);
  return counts;
}

std::int64_t sum_of(const Counts& counts) { return std::accumulate(counts.begin(), counts.end(), std::int64_t{0}); }

std::int64_t largest_bytes(const Table& table) {
  std::int64_t largest = 0;
  for (int r = 0; r < ranks; ++r) {
    largest = std::max({largest, sum_of(table[static_cast<std::size_t>(r)]), sum_of(column(table, r))});
  }
  return largest * static_cast<std::int64_t>(sizeof(std::int32_t));
}

/// An exchange of one step with its expected result.
struct Exchange {
  Exchange(Comm& comm, int number) : step(number), table(tokens_of(number)), me(comm.rank()) {
    in_counts = table[static_cast<std::size_t>(me)];
    out_counts = column(table, me);
    out.resize(static_cast<std::size_t>(sum_of(out_counts)));
    for (int to = 0; to < ranks; ++to)
      in.insert(in.end(), static_cast<std::size_t>(in_counts[static_cast<std::size_t>(to)]), value(me, to));
  }
  std::int32_t value(int from, int to) const { return step * 100 + from * 10 + to; }
  Work issue(Comm& comm, const Options& options) {
    return comm.all_to_allv(in, {in_counts}, out, {out_counts}, options);
  }
  void check() const {
    std::vector<std::int32_t> expected;
    for (int from = 0; from < ranks; ++from) {
      expected.insert(expected.end(), static_cast<std::size_t>(out_counts[static_cast<std::size_t>(from)]),
                      value(from, me));
    }
    EXPECT_EQ(out, expected) << "step " << step;
  }
  int step;
  Table table;
  int me;
  Counts in_counts, out_counts;
  std::vector<std::int32_t> in, out;
};

/// The operation whose size decides the route of this one; none for the first ones.
std::optional<std::uint64_t> decided_by(std::uint64_t operation) {
  const SizeWindow window = SizeWindow::of(operation);
  if (window.number < 2) return {};
  const SizeWindow before = SizeWindow::of(window.first - 1), told = SizeWindow::of(before.first - 1);
  return told.first + (operation - window.first) % told.length;
}

/// The expected route of each operation, by the sizes of all.
std::vector<std::string> routes_by(const std::vector<std::int64_t>& sizes, const std::string& small,
                                   const std::string& large) {
  std::vector<std::string> routes;
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    const auto by = decided_by(k);
    routes.push_back((by ? sizes[*by] : nominal_v_bytes) <= border ? small : large);
  }
  return routes;
}

constexpr int first_ones = 8;  ///< routed by the nominal size

TEST(SizeWindow, says_by_whose_size_an_operation_goes) {
  std::vector<std::int64_t> by;
  for (std::uint64_t k = 0; k < 52; ++k) by.push_back(decided_by(k) ? static_cast<std::int64_t>(*decided_by(k)) : -1);
  EXPECT_EQ(by, (std::vector<std::int64_t>{-1, -1, -1, -1, -1, -1, -1, -1, 0, 1, 2,  3,  0,  1,  2,  3,   //
                                           4,  5,  6,  7,  4,  5,  6,  7,  4, 5, 6,  7,  4,  5,  6,  7,   //
                                           8,  9,  10, 11, 12, 13, 14, 15, 8, 9, 10, 11, 12, 13, 14, 15,  //
                                           16, 17, 18, 19}));
  for (std::uint64_t k = first_ones; k < 1000; ++k) {
    const SizeWindow told = SizeWindow::of(*decided_by(k)), own = SizeWindow::of(k);
    EXPECT_EQ(told.number + 2, own.number);
    EXPECT_EQ((k - *decided_by(k)) % 4, 0u) << k;
    EXPECT_LE(k - *decided_by(k), core::sizes_settle_after);
    EXPECT_EQ(own.ends_with(k), SizeWindow::of(k + 1).number != own.number);
  }
}

class Sizes : public test::Traced {
 protected:
  void run(const test::Body& body, const std::string& rules = by_size) {
    test::run_threads(ranks, body, [&](ContextOptions& options) {
      options.backends = {"shm", "plain"};
      options.rules = rules;
    });
  }
  /// The backends of an operation's calls that named none, on one rank.
  std::vector<std::string> taken(int rank, Op op) {
    const trace::Trace trace = trace::open_trace(folder_.native());
    std::vector<std::string> routes;
    trace.rank(rank).for_each([&](const trace::Event& event) {
      if (event.op == op && trace.names[event.scope] != "named") routes.push_back(trace.names[event.backend]);
    });
    return routes;
  }
  void expect_taken(Op op, const std::vector<std::string>& routes) {
    for (int rank = 0; rank < ranks; ++rank) EXPECT_EQ(taken(rank, op), routes) << "on rank " << rank;
  }
};

std::vector<std::int64_t> sizes_of(int steps) {
  std::vector<std::int64_t> sizes;
  for (int step = 0; step < steps; ++step) sizes.push_back(largest_bytes(tokens_of(step)));
  return sizes;
}

TEST_F(Sizes, of_experts_decide_alike_on_all_ranks) {
  constexpr int steps = 90;
  run([](Context& context) {
    Comm world = context.world();
    std::vector<std::int32_t> sum_of_all{1};
    for (int step = 0; step < steps;) {
      if (step % 20 < 10) {  // one after another
        Exchange exchange(world, step++);
        exchange.issue(world, {});
        exchange.check();
        continue;
      }
      // Ten at once, among others that must keep their order on either lane
      std::vector<std::unique_ptr<Exchange>> many;
      std::vector<Work> works;
      for (int i = 0; i < 10; ++i) {
        many.push_back(std::make_unique<Exchange>(world, step++));
        works.push_back(many.back()->issue(world, {.async = true}));
        works.push_back(world.all_reduce(sum_of_all, max, {.backend = i % 2 == 0 ? "shm" : "plain", .async = true}));
      }
      for (Work& work : works) work.wait();
      for (const auto& exchange : many) exchange->check();
    }
  });
  const auto expected = routes_by(sizes_of(steps), "shm", "plain");
  EXPECT_THAT(expected, ::testing::Contains("shm"));
  EXPECT_THAT(expected, ::testing::Contains("plain"));
  expect_taken(Op::all_to_allv, expected);
}

TEST_F(Sizes, of_rooted_operations_are_told_by_their_roots) {
  constexpr int steps = 60;
  const auto counts_of = [](int step) {
    Counts counts;
    for (int r = 0; r < ranks; ++r) counts.push_back(step % 4 < 2 ? r + 1 : r == step % ranks ? 2000 : 3);
    return counts;
  };
  run([&](Context& context) {
    Comm world = context.world();
    const auto me = static_cast<std::size_t>(context.rank());
    for (int step = 0; step < steps; ++step) {
      const Counts counts = counts_of(step);
      const int root = (step * 5 + step / 4) % ranks;
      std::vector<std::int32_t> mine(static_cast<std::size_t>(counts[me]), 10 * step + context.rank()),
          back(mine.size());
      std::vector<std::int32_t> all(context.rank() == root ? static_cast<std::size_t>(sum_of(counts)) : 0);
      Work gathered = world.gatherv(mine, all, {counts}, root, {.async = true});
      // Ordered after the first by their memory
      Work scattered = world.scatterv(all, {counts}, back, root, {.async = true});
      scattered.wait();
      EXPECT_EQ(back, mine) << step;
    }
  });
  std::vector<std::int64_t> sizes;
  for (int step = 0; step < steps; ++step) sizes.push_back(4 * sum_of(counts_of(step)));
  expect_taken(Op::gatherv, routes_by(sizes, "plain", "shm"));
  expect_taken(Op::scatterv, routes_by(sizes, "shm", "plain"));
}

TEST_F(Sizes, of_operations_that_name_their_backend_do_not_count) {
  constexpr int steps = 40;
  run([](Context& context) {
    Comm world = context.world();
    for (int step = 0; step < steps; ++step) {
      Exchange named(world, 3), exchange(world, step);
      {
        const Scope scope("named");
        named.issue(world, {.backend = step % 2 == 0 ? "shm" : "plain"});
      }
      exchange.issue(world, {.backend = "auto"});
      exchange.check();
    }
  });
  expect_taken(Op::all_to_allv, routes_by(sizes_of(steps), "shm", "plain"));
}

/// What a straggler finds: everything that the others issued without waiting for it.
TEST_F(Sizes, of_a_straggler_hold_nobody_who_issues) {
  constexpr int steps = 2 * first_ones + 3;
  std::atomic<int> ahead{0};
  run([&](Context& context) {
    Comm world = context.world();
    std::vector<std::unique_ptr<Exchange>> many;
    std::vector<Work> works;
    std::vector<std::int32_t> total{context.rank()}, message{7};
    while (context.rank() == 2 && ahead < 2) std::this_thread::yield();
    for (int step = 0; step < steps; ++step) {
      many.push_back(std::make_unique<Exchange>(world, step));
      works.push_back(many.back()->issue(world, {.async = true}));
    }
    works.push_back(world.all_reduce(total, sum, {.async = true}));  // behind operations whose route is undecided
    if (context.rank() < 2) {                                        // messages overtake them
      if (context.rank() == 0) world.send(message, 1);
      if (context.rank() == 1) world.recv(message, 0);
      ++ahead;
    }
    for (Work& work : works) work.wait();
    for (const auto& exchange : many) exchange->check();
    EXPECT_EQ(total[0], 3);
  });
  expect_taken(Op::all_to_allv, routes_by(sizes_of(steps), "shm", "plain"));
}

/// The error that the others get about one absent rank. The rank ends when they have it.
void expect_told(const std::function<void(Comm&)>& calls, ErrorKind kind, const std::string& words,
                 const std::function<void(Comm&)>& absent) {
  std::atomic<int> told{0};
  test::run_threads(
      ranks,
      [&](Context& context) {
        Comm world = context.world();
        if (context.rank() == 2) {
          absent(world);
          while (told < 2) context.progress();
          return;
        }
        try {
          calls(world);
          ADD_FAILURE() << "no error";
        } catch (const Error& error) {
          EXPECT_EQ(error.kind(), kind) << error.what();
          EXPECT_EQ(error.context().ranks, std::vector<int>{2}) << error.what();
          if (context.rank() == 0) {
            EXPECT_THAT(error.what(), HasSubstr(words));
          }
        }
        ++told;
      },
      [](ContextOptions& options) {
        options.backends = {"shm", "plain"};
        options.rules = by_size;
      });
}

void issue_ahead(Comm& world, const Options& last) {
  std::vector<std::unique_ptr<Exchange>> many;
  std::vector<Work> works;
  for (int step = 0; step < first_ones; ++step) {
    many.push_back(std::make_unique<Exchange>(world, step));
    works.push_back(many.back()->issue(world, {.async = true}));
  }
  Exchange held(world, first_ones);
  held.issue(world, last);
}

TEST_F(Sizes, that_are_not_told_by_the_deadline_are_an_error_that_says_so) {
  expect_told(
      [](Comm& world) {
        issue_ahead(world,
                    {.deadline = world.rank() == 0 ? std::chrono::milliseconds(200) : std::chrono::milliseconds(0)});
      },
      ErrorKind::timeout, "which decides its route", [](Comm&) {});
}

TEST_F(Sizes, of_an_aborted_comm_are_waited_for_no_longer) {
  expect_told([](Comm& world) { issue_ahead(world, {}); }, ErrorKind::aborted, "rank 2 called abort",
              [](Comm& world) { world.abort(); });
}

TEST_F(Sizes, are_left_behind_when_comms_go) {
  run([](Context& context) {
    for (int i = 0; i < 40; ++i) {
      Comm comm = context.world().dup();
      const auto me = static_cast<std::size_t>(comm.rank());
      for (int step = 0; step < i % 19; ++step) {  // all but the root may have left before it arrives
        const Counts counts{1, 2, 2000};
        std::vector<std::int32_t> mine(static_cast<std::size_t>(counts[me]), step), all(comm.rank() == 1 ? 2003 : 0);
        comm.gatherv(mine, all, {counts}, 1);
        EXPECT_EQ(all, std::vector<std::int32_t>(all.size(), step));
      }
    }
  });
}

#ifndef __SANITIZE_THREAD__  // forked ranks
TEST_F(Sizes, travel_over_any_backend) {
  std::vector<std::string> names{"shm", "plain"};
  for (const auto& known : core::known_backends()) {
    if ((known->name() == "gloo" || known->name() == "ucx") && known->unavailable().empty())
      names.push_back(known->name());
  }
  constexpr int steps = 21;
  const auto body = [&](Context& context) {
    for (const std::string& over : names) {
      Comm comm = context.world().dup({.rules = "send=" + over});
      for (int step = 0; step < steps; ++step) {
        Exchange exchange(comm, step);
        Work work = exchange.issue(comm, {.async = step % 2 == 0});
        work.wait();
        exchange.check();
      }
    }
  };
  test::run_processes(ranks, body, [&](ContextOptions& options) {
    options.backends = names;
    options.rules = by_size;
  });
  std::vector<std::string> expected;
  for (std::size_t i = 0; i < names.size(); ++i) {
    for (const std::string& route : routes_by(sizes_of(steps), "shm", "plain")) expected.push_back(route);
  }
  expect_taken(Op::all_to_allv, expected);
}
#endif

TEST_F(Sizes, are_compared_with_check_mode_on) {
  constexpr int steps = 40;
  setenv("MEDLEY_CHECK", "1", 1);
  run([](Context& context) {
    Comm world = context.world();
    std::vector<std::unique_ptr<Exchange>> many;
    std::vector<Work> works;
    for (int step = 0; step < steps; ++step) {
      many.push_back(std::make_unique<Exchange>(world, step));
      works.push_back(many.back()->issue(world, {.async = true}));
    }
    for (Work& work : works) work.wait();
    for (const auto& exchange : many) exchange->check();
  });
  unsetenv("MEDLEY_CHECK");
  expect_taken(Op::all_to_allv, routes_by(sizes_of(steps), "shm", "plain"));
}

TEST_F(Sizes, refuse_an_algorithm_that_one_of_the_routes_has_not) {
  run([](Context& context) {
    Comm world = context.world();
    Exchange exchange(world, 0);
    EXPECT_THROW(exchange.issue(world, {.algorithm = "native"}), Error);  // which plain does not have
    exchange.issue(world, {.algorithm = "pairwise"});
    exchange.check();
  });
}

}  // namespace
}  // namespace medley
