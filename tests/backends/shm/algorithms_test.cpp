// Every named algorithm of the shm collectives, at sizes around the protocol crossovers, from and to every root: each
// gives the reference result, and a reduction gives the same bits with every algorithm.
#include "backends/shm/algorithm.hpp"
#include "backends/shm/segment_view.hpp"
#include "conformance/run_case.hpp"

namespace medley::conformance {
namespace {

constexpr Op ops[] = {Op::broadcast, Op::reduce, Op::all_reduce, Op::gather, Op::scatter, Op::gatherv, Op::scatterv};

/// Bytes of the whole tensor: the flag's line, brief ones, staged ones, the steps of a pipeline, a slot, the staging
/// area.
std::vector<std::int64_t> sizes(int ranks) {
  const shm::Geometry geometry(ranks);
  const auto slot = static_cast<std::int64_t>(geometry.slot_bytes);
  std::vector<std::int64_t> all = {0, 4};
  for (const std::int64_t edge :
       {std::int64_t{shm::inline_bytes}, std::int64_t{shm::brief_bytes}, std::int64_t{16 << 10}, std::int64_t{64 << 10},
        slot, slot * std::int64_t{shm::depth}}) {
    all.insert(all.end(), {edge - 4, edge, edge + 4});
  }
  all.push_back(slot * std::int64_t{shm::depth} * 2 + 100);
  return all;
}

class ShmAlgorithms : public testing::TestWithParam<int> {};

TEST_P(ShmAlgorithms, GiveWhatTheReferenceSays) {
  with_ranks(GetParam(), [](Comm& comm) {
    std::uint64_t cases = 0;
    for (const Op op : ops) {
      for (const std::int64_t size : sizes(comm.size())) {
        if (reduces(op) && comm.size() > 3 && size > 300'000) continue;  // the reference takes seconds
        Case c{.op = op,
               .count = size / 4,
               .root = static_cast<int>(++cases % static_cast<std::uint64_t>(comm.size())),
               .seed = cases};
        if (op != Op::broadcast && op != Op::reduce && op != Op::all_reduce) c.count /= comm.size();
        c.in_place = cases % 2 == 0 && op != Op::broadcast;
        std::vector<std::string_view> names = shm::Algorithm::names(op, true);
        names.push_back("native");
        std::int64_t bits = 0;
        for (const std::string_view name : names) {
          Trial trial(comm, c);
          trial.start(comm, {.async = cases % 3 == 0, .algorithm = name});
          trial.finish(Style::wait);
          const bool reduced_here = op == Op::all_reduce || (op == Op::reduce && comm.rank() == c.root);
          if (name == names.front() && reduced_here) bits = trial.fingerprint();
          EXPECT_EQ(reduced_here ? trial.fingerprint() : bits, bits)
              << describe(c, comm.size()) << " by " << name << ", on rank " << comm.rank();
          EXPECT_EQ(trial.verdict(), "") << describe(c, comm.size()) << " by " << name << ", on rank " << comm.rank();
        }
      }
    }
    comm.barrier();
  });
}

// Nothing separates the broadcasts, so a root runs ahead in its slots while the others still read from them.
TEST_P(ShmAlgorithms, FollowEachOtherFromChangingRoots) {
  with_ranks(GetParam(), [](Comm& comm) {
    const std::vector<std::string_view> names = shm::Algorithm::names(Op::broadcast, true);
    std::vector<std::int32_t> data(shm::Geometry(comm.size()).slot_bytes / sizeof(std::int32_t));
    for (int i = 0; i < 200; ++i) {
      const int root = i / 7 % comm.size();  // seven in a row from each root: more than there are slots
      const std::size_t count = data.size() / (1u << (i % 5));
      std::fill(data.begin(), data.end(), comm.rank() == root ? i : -1);
      comm.broadcast(std::span(data).first(count), root,
                     {.algorithm = names[static_cast<std::size_t>(i) % names.size()]});
      ASSERT_EQ(std::count(data.begin(), data.begin() + static_cast<std::ptrdiff_t>(count), i),
                static_cast<std::ptrdiff_t>(count))
          << "broadcast " << i << " on rank " << comm.rank();
    }
    comm.barrier();
  });
}

// The first exchange of a large reduce tells all ranks how near they are, so all of them change their way with the same
// call.
TEST_P(ShmAlgorithms, ChangeTheWayOfLargeReducesTogether) {
  with_ranks(GetParam(), [](Comm& comm) {
    const int ranks = comm.size();
    for (int i = 0; i < 80; ++i) {
      const int root = i / 5 % ranks;
      const std::size_t count = (std::size_t{6} << 10) << (i % 5);  // 24 to 384 KiB
      const std::vector<std::int32_t> in(count, comm.rank() + i);
      std::vector<std::int32_t> out(comm.rank() == root ? count : 0);
      comm.reduce(in, out, sum, root, {.deadline = std::chrono::seconds(20)});
      const int expected = ranks * i + ranks * (ranks - 1) / 2;
      ASSERT_EQ(std::count(out.begin(), out.end(), expected), static_cast<std::ptrdiff_t>(out.size()))
          << "reduce " << i;
    }
    comm.barrier();
  });
}

// A rank that reads one part directly and the next from a slot tells the first giver that it has finished.
TEST_P(ShmAlgorithms, GiveOneLargeAndSmallPartsInOneExchange) {
  with_ranks(GetParam(), [](Comm& comm) {
    constexpr std::int64_t large = (5 << 20) / 4;  // beyond all that goes through the segment
    for (int giver = 0; giver < comm.size(); ++giver) {
      std::vector<std::int64_t> counts(static_cast<std::size_t>(comm.size()), 2000);
      counts[static_cast<std::size_t>(giver)] = large;
      std::vector<std::int32_t> mine(static_cast<std::size_t>(counts[static_cast<std::size_t>(comm.rank())]),
                                     comm.rank() + 1),
          all;
      for (int r = 0; r < comm.size(); ++r)
        all.insert(all.end(), static_cast<std::size_t>(counts[static_cast<std::size_t>(r)]), r + 1);
      std::vector<std::int32_t> got(all.size());
      comm.all_gatherv(mine, got, {counts}, {.deadline = std::chrono::seconds(20)});
      EXPECT_EQ(got, all) << "rank " << comm.rank();
    }
  });
}

TEST_P(ShmAlgorithms, RefuseOtherCountsOnOtherRanks) {
  for (const std::string_view name : shm::Algorithm::names(Op::broadcast, true)) {
    with_ranks(GetParam(), [name](Comm& comm) {
      std::vector<float> data(100'000 + (comm.rank() == 1 ? 1 : 0));
      const auto broadcast = [&] {
        comm.broadcast(data, 0, {.algorithm = name});
        comm.barrier();  // a rank whose count equals the root's may have all its data by now
      };
      EXPECT_THROW(broadcast(), Error) << name << " on rank " << comm.rank();
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, ShmAlgorithms, testing::Values(2, 3, 4, 5, 8),
                         [](const auto& of) { return "Of" + std::to_string(of.param); });

TEST(ShmAlgorithm, OfAnUnknownNameIsRefusedWithTheKnownOnes) {
  with_ranks(2, [](Comm& comm) {
    std::vector<float> data(4, 1.0f);
    try {
      comm.broadcast(data, 0, {.algorithm = "three_shot"});
      ADD_FAILURE() << "not refused";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::invalid);
      for (const char* word : {"native", "one_shot_direct", "two_shot_segment", "binomial"}) {
        EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
      }
    }
    EXPECT_THROW(comm.barrier({.algorithm = "direct"}), Error);
    comm.barrier();
  });
}

}  // namespace
}  // namespace medley::conformance
