// Every algorithm by its name, on the backend under test: against the sequential reference, many at once, and
// rejected when there is no such name.
#include <deque>

#include "algorithms/registry.hpp"
#include "conformance/errors.hpp"
#include "conformance/run_case.hpp"

namespace medley::conformance {
namespace {

constexpr int first_collective = static_cast<int>(Op::broadcast);

/// Calls visit(op, name) for every algorithm that fills something in.
template <class Visit>
void each_algorithm(Visit visit) {
  for (int op = first_collective; op < op_count; ++op) {
    for (std::string_view name : algorithms::names(static_cast<Op>(op))) visit(static_cast<Op>(op), name);
  }
}

/// Sizes around zero, one element per rank, odd ones, and one of several segments.
std::vector<std::int64_t> counts_for(Op op, DType dtype) {
  if (op == Op::barrier) return {0};
  if (dtype != DType::f32 && dtype != DType::bf16) return {17};
  if (reduced()) return {0, 1, 5, 1003, 150'001};
  return {0, 1, 5, 1003, 150'001, 700'001};
}

std::vector<ReduceOp> reductions_for(Op op, DType dtype) {
  if (!reduces(op)) return {ReduceOp::sum};
  if (reducible(dtype, ReduceOp::avg)) return {ReduceOp::sum, ReduceOp::avg, ReduceOp::min};
  return {ReduceOp::sum, ReduceOp::bxor};
}

class AlgorithmsTest : public testing::TestWithParam<int> {};

TEST_P(AlgorithmsTest, each_equals_the_reference_and_all_reduce_has_the_same_bits_everywhere) {
  if (!fills_in()) GTEST_SKIP() << "only host memory is filled in";
  with_ranks(GetParam(), [](Comm& comm) {
    std::uint64_t cases = 0;
    std::vector<std::int64_t> bits;
    each_algorithm([&](Op op, std::string_view name) {
      for (DType dtype : {DType::f32, DType::bf16, DType::f16, DType::i32, DType::boolean}) {
        for (ReduceOp reduce : reductions_for(op, dtype)) {
          for (std::int64_t count : counts_for(op, dtype)) {
            if (count > 2000 && reduce != ReduceOp::sum && reduce != ReduceOp::avg) continue;
            Case c{.op = op, .dtype = dtype, .reduce = reduce, .count = count, .seed = ++cases};
            if (count > 2000 && op != Op::broadcast && op != Op::reduce && op != Op::all_reduce) c.count /= comm.size();
            c.root = static_cast<int>(cases % static_cast<std::uint64_t>(comm.size()));
            c.in_place = cases % 2 == 0 && op != Op::broadcast && op != Op::barrier;
            c.gaps = is_v_collective(op) && cases % 3 == 0;
            Trial trial(comm, c);
            trial.start(comm, {.async = cases % 4 == 1, .algorithm = name});
            trial.finish(Style::wait);
            if (op == Op::all_reduce) bits.push_back(trial.fingerprint());
            EXPECT_EQ(trial.verdict(), "") << describe(c, comm.size()) << " by " << name << ", on rank " << comm.rank();
          }
        }
      }
    });
    std::vector<std::int64_t> all(bits.size() * static_cast<std::size_t>(comm.size()));
    comm.all_gather(bits, all);
    for (std::size_t i = 0; i < all.size(); ++i) {
      ASSERT_EQ(all[i], bits[i % bits.size()])
          << "all_reduce number " << i % bits.size() << " differs on rank " << i / bits.size();
    }
  });
}

TEST_P(AlgorithmsTest, many_at_once_do_not_mix) {
  if (!fills_in()) GTEST_SKIP() << "only host memory is filled in";
  with_ranks(GetParam(), [](Comm& comm) {
    std::deque<Trial> trials;
    std::uint64_t cases = 0;
    for (int round = 0; round < 3; ++round) {
      each_algorithm([&](Op op, std::string_view name) {
        Case c{.op = op, .count = op == Op::barrier ? 0 : 100 + round * 400, .seed = ++cases};
        c.root = static_cast<int>(cases % static_cast<std::uint64_t>(comm.size()));
        trials.emplace_back(comm, c).start(comm, {.async = true, .algorithm = name});
      });
    }
    // Some ranks wait from the last to the first: completion must not depend on the order.
    if (comm.rank() % 2 == 1) {
      for (auto trial = trials.rbegin(); trial != trials.rend(); ++trial) trial->finish(Style::wait);
    }
    for (Trial& trial : trials) trial.finish(Style::test);
    for (Trial& trial : trials) EXPECT_EQ(trial.verdict(), "") << "on rank " << comm.rank();
    comm.barrier();
  });
}

TEST_P(AlgorithmsTest, an_unknown_name_is_refused_with_the_known_ones_and_harms_nothing) {
  with_ranks(GetParam(), [](Comm& comm) {
    std::vector<float> data(4, 1.0f);
    try {
      comm.all_reduce(data, sum, {.algorithm = "quick"});
      ADD_FAILURE() << "not refused";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::invalid);
      const std::string sentence = error.what();
      for (const char* word : {"\"quick\"", "ring", "recursive_doubling", "rabenseifner"}) {
        EXPECT_NE(sentence.find(word), std::string::npos) << sentence;
      }
    }
    comm.all_reduce(data, sum, {.algorithm = "ring"});
    EXPECT_EQ(data[0], static_cast<float>(comm.size()));
    EXPECT_THROW(comm.broadcast(data, 0, {.algorithm = "bruck"}), Error);
    comm.barrier();
  });
}

TEST_P(AlgorithmsTest, deterministic_gives_the_same_bits_again) {
  with_ranks(GetParam(), [](Comm& comm) {
    for (std::int64_t count : {1, 5'000, 100'000}) {
      std::int64_t before = 0;
      for (int time = 0; time < 3; ++time) {
        Trial trial(comm, {.op = Op::all_reduce, .dtype = DType::bf16, .count = count, .seed = 7});
        trial.start(comm, {.deterministic = true});
        trial.finish(Style::wait);
        if (time > 0) {
          EXPECT_EQ(trial.fingerprint(), before);
        }
        before = trial.fingerprint();
      }
    }
    comm.barrier();
  });
}

/// Over these a rank with fewer segments would end well, and the others would wait for the rest of them.
TEST(Counts, that_differ_are_an_error_also_where_segments_are_equally_long) {
  if (!fills_in()) GTEST_SKIP() << "only host memory is filled in";
  struct InSegments {
    Op op;
    const char* algorithm;
  };
  for (const InSegments& one : {InSegments{Op::all_gather, "ring"}, InSegments{Op::all_reduce, "ring"},
                                InSegments{Op::broadcast, "binomial"}, InSegments{Op::reduce, "binomial"}}) {
    with_ranks(
        2,
        [&one](Comm& comm) {
          Comm victim = comm.dup();
          // Whole segments: 1 of 256 KiB here and 2 there
          const std::size_t count = comm.rank() == 0 ? 65'536 : 131'072;
          std::vector<float> in(count, 1.0f), out(2 * count);
          const Options options{.algorithm = one.algorithm};
          const auto error = error_of([&] {
            if (one.op == Op::all_gather) victim.all_gather(in, out, options);
            if (one.op == Op::all_reduce) victim.all_reduce(in, sum, options);
            if (one.op == Op::broadcast) victim.broadcast(in, 0, options);
            if (one.op == Op::reduce) victim.reduce(in, std::span(out).first(count), sum, 0, options);
            victim.barrier();  // for ranks that only send
          });
          ASSERT_TRUE(error);
          EXPECT_TRUE(error->kind() == ErrorKind::mismatch || error->kind() == ErrorKind::aborted) << error->what();
          comm.barrier();
        },
        std::chrono::seconds(30));
  }
}

INSTANTIATE_TEST_SUITE_P(ranks, AlgorithmsTest, testing::Values(1, 2, 3, 4, 5, 8),
                         [](const auto& of) { return "of_" + std::to_string(of.param); });

}  // namespace
}  // namespace medley::conformance
