// A rank that comes late to a v-collective: the others are inside the call, or have returned with a pending
// Work, and their lists of counts and offsets are freed. The delay is the attack itself; it synchronises
// nothing.
#include <algorithm>
#include <memory>

#include "conformance/run_case.hpp"

namespace medley::conformance {
namespace {

using namespace std::chrono_literals;

enum class How { blocking, patient, async };

/// The call's lists as most programs have them: freed when it returns. A late reader finds garbage, or a
/// sanitizer catches it.
class Vanishing {
 public:
  explicit Vanishing(const PartLists& lists) : counts_(lists.counts), offsets_(lists.offsets) {}
  ~Vanishing() {
    std::ranges::fill(counts_, -0x4141414141);
    std::ranges::fill(offsets_, -0x4242424242);
  }
  Vanishing(const Vanishing&) = delete;
  Vanishing& operator=(const Vanishing&) = delete;
  Parts parts() const { return {counts_, offsets_}; }

 private:
  std::vector<std::int64_t> counts_, offsets_;
};

Work start(Comm& comm, const Case& c, const Shape& s, std::vector<std::int32_t>& in, std::vector<std::int32_t>& out,
           const Options& options) {
  const auto ins = std::make_unique<Vanishing>(s.in_parts), outs = std::make_unique<Vanishing>(s.out_parts);
  switch (c.op) {
    case Op::gatherv: return comm.gatherv(in, out, outs->parts(), c.root, options);
    case Op::scatterv: return comm.scatterv(in, ins->parts(), out, c.root, options);
    case Op::all_gatherv: return comm.all_gatherv(in, out, outs->parts(), options);
    case Op::reduce_scatterv: return comm.reduce_scatterv(in, ins->parts(), out, ReduceOp::sum, options);
    default: return comm.all_to_allv(in, ins->parts(), out, outs->parts(), options);
  }
}

std::int32_t value(int rank, std::int64_t at) { return rank * 100'000 + static_cast<std::int32_t>(at % 90'000); }

void try_late(Comm& comm, const Case& c, int late, std::chrono::milliseconds delay, How how) {
  const int n = comm.size(), me = comm.rank();
  const Shape s = shape_of(c, me, n);
  std::vector<std::int32_t> in(static_cast<std::size_t>(s.in)), out(static_cast<std::size_t>(s.out), -1);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = value(me, static_cast<std::int64_t>(i));
  std::vector<std::int32_t> expected = out;
  for (const Move& move : s.moves) {
    for (std::int64_t i = 0; i < move.count; ++i) {
      std::int32_t& at = expected[static_cast<std::size_t>(move.to + i)];
      at = move.from == every_rank ? 0 : value(move.from, move.at + i);
      for (int r = 0; r < n && move.from == every_rank; ++r) at += value(r, move.at + i);
    }
  }
  if (me == late) std::this_thread::sleep_for(delay);
  Work work =
      start(comm, c, s, in, out,
            {.async = how == How::async, .max_wait = how == How::patient ? std::chrono::nanoseconds(5ms) : 0ns});
  // The program's next allocations, in memory that the lists may have used.
  const std::vector<std::unique_ptr<std::int64_t>> next = [] {
    std::vector<std::unique_ptr<std::int64_t>> made;
    for (int i = 0; i < 64; ++i) made.push_back(std::make_unique<std::int64_t>(0x4343434343));
    return made;
  }();
  work.wait();
  EXPECT_EQ(out, expected) << describe(c, n) << ", rank " << late << " late by " << delay.count() << " ms, way "
                           << static_cast<int>(how);
}

class Late : public testing::TestWithParam<Op> {};

/// With MEDLEY_TEST_FULL every rank is late by every delay, otherwise one rank by the shortest.
TEST_P(Late, a_rank_that_comes_late_changes_no_element) {
  if (over_nccl()) GTEST_SKIP() << "on host memory";
  with_ranks(3, [](Comm& comm) {
    const std::vector<std::chrono::milliseconds> delays = full() ? std::vector{50ms, 150ms, 500ms} : std::vector{50ms};
    std::uint64_t seed = 0;
    for (const How how : {How::blocking, How::patient, How::async}) {
      for (const std::int64_t count : {3, 3'000}) {
        for (const auto delay : delays) {
          for (int turn = 0; turn < (full() ? comm.size() : 1); ++turn) {
            const int late = static_cast<int>(++seed % 3);
            try_late(
                comm,
                {.op = GetParam(), .dtype = DType::i32, .count = count, .root = 1, .gaps = seed % 2 == 0, .seed = seed},
                late, delay, how);
          }
        }
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(v_collectives, Late,
                         testing::Values(Op::gatherv, Op::scatterv, Op::all_gatherv, Op::reduce_scatterv,
                                         Op::all_to_allv),
                         [](const auto& tested) { return std::string(name(tested.param)); });

}  // namespace
}  // namespace medley::conformance
