// Which tensors share a message, and where they are in it: the same on every rank.
#include <gtest/gtest.h>

#include "engine/hazard_index.hpp"
#include "fuse/compose.hpp"

namespace medley::fuse {
namespace {

Member reduction(std::int64_t count, DType dtype, ReduceOp op = ReduceOp::sum, const Options& options = {}) {
  Call call;
  call.op = Op::all_reduce;
  call.dtype = dtype;
  call.reduce = op;
  call.in_count = call.out_count = count;
  return {call, options};
}

Member gathering(std::int64_t count, DType dtype, int ranks) {
  Call call;
  call.op = Op::all_gather;
  call.dtype = dtype;
  call.in_count = count;
  call.out_count = count * ranks;
  return {call, {}};
}

std::vector<std::vector<std::uint32_t>> messages(const std::vector<Composed>& composed) {
  std::vector<std::vector<std::uint32_t>> lists;
  for (const Composed& one : composed) lists.push_back(one.members);
  return lists;
}
using Lists = std::vector<std::vector<std::uint32_t>>;

TEST(Compose, MakesOneMessageForEachTypeAndReduction) {
  const std::vector<Member> members = {reduction(4, DType::f32), reduction(4, DType::i64), reduction(5, DType::f32),
                                       reduction(4, DType::f32, ReduceOp::max), reduction(7, DType::i64)};
  const auto composed = compose(members, 0, 4, {});
  EXPECT_EQ(messages(composed), (Lists{{0, 2}, {1, 4}, {3}}));
  EXPECT_EQ(composed[0].call.in_count, 9);
  EXPECT_EQ(composed[0].call.dtype, DType::f32);
  EXPECT_FALSE(composed[2].fusion) << "a tensor alone is not packed";
}

TEST(Compose, MovesMixedTypesAsBytesWhereNothingIsCombined) {
  const std::vector<Member> members = {gathering(3, DType::f32, 2), gathering(5, DType::u8, 2),
                                       gathering(2, DType::i64, 2)};
  const auto composed = compose(members, 1, 2, {});
  ASSERT_EQ(composed.size(), 1u);
  EXPECT_EQ(composed[0].call.dtype, DType::u8);
  EXPECT_EQ(composed[0].call.in_count, 12 + 5 + 16);
  EXPECT_EQ(composed[0].call.out_count, 2 * (12 + 5 + 16));
}

TEST(Limits, GrowWithTheRanksWhereMessagesAreCopies) {
  EXPECT_EQ(default_host_limit(2, 1, true), 2 << 10);
  EXPECT_EQ(default_host_limit(8, 1, true), 8 << 10);
  EXPECT_EQ(default_host_limit(128, 1, true), 32 << 10);
  EXPECT_EQ(default_host_limit(2, 1, false), 16 << 10) << "a message of a library costs more";
  EXPECT_EQ(default_host_limit(2, 2, false), 64 << 10) << "and between hosts it costs most";
}

TEST(Limits, AreThoseOfTheBackendThatACallNames) {
  const Limits limits{.host = 16, .of_backend = {{"mpi", 4096}}};
  const std::vector<Member> members = {
      reduction(8, DType::f32), reduction(8, DType::f32, ReduceOp::sum, {.backend = "mpi"}), reduction(8, DType::f32),
      reduction(8, DType::f32, ReduceOp::sum, {.backend = "mpi"})};
  EXPECT_EQ(messages(compose(members, 0, 2, limits)), (Lists{{0}, {1, 3}, {2}}));
}

TEST(Compose, MakesASeriesOfLargeTensorsOfOneTypeWhereAskedTo) {
  const Limits limits{.host = 16};
  const std::vector<Member> members = {reduction(8, DType::f32),
                                       reduction(9, DType::f16),
                                       reduction(1, DType::f32),
                                       reduction(9, DType::f32),
                                       reduction(9, DType::f32, ReduceOp::sum, {.backend = "mpi"}),
                                       reduction(2, DType::f32)};
  const auto composed = compose(members, 0, 2, limits, Large::in_series);
  ASSERT_EQ(messages(composed), (Lists{{0, 3}, {1}, {2, 5}, {4}}));
  EXPECT_TRUE(composed[0].fusion->is_series());
  EXPECT_FALSE(composed[2].fusion->is_series());
  EXPECT_FALSE(composed[1].fusion) << "one tensor is no series";
  const Composed part = part_of_series(composed[0], std::vector<std::uint32_t>{1}, 0, 2);
  EXPECT_FALSE(part.fusion);
  EXPECT_EQ(part.members, std::vector<std::uint32_t>{3});
}

TEST(Compose, LeavesLargeTensorsAloneAndBoundsItsMessages) {
  const Limits limits{.host = 1 << 20};
  std::vector<Member> members(9, reduction(1 << 18, DType::f32));  // 1 MiB each
  members.push_back(reduction((1 << 18) + 1, DType::f32));
  EXPECT_EQ(messages(compose(members, 0, 2, limits)), (Lists{{0, 1, 2, 3}, {4, 5, 6, 7}, {8}, {9}}));
}

TEST(Compose, SeparatesWhatIsRoutedOrRootedDifferently) {
  Call broadcast;
  broadcast.op = Op::broadcast;
  broadcast.in_count = 8;
  Call other = broadcast;
  other.root = 1;
  other.in_count = 0;
  other.out_count = 8;
  const std::vector<Member> members = {
      {broadcast, {}}, {other, {}}, {broadcast, {}}, {broadcast, {.backend = "mpi"}}, {broadcast, {.backend = "auto"}}};
  EXPECT_EQ(messages(compose(members, 0, 2, {})), (Lists{{0, 2, 4}, {1}, {3}}));
}

TEST(Compose, TakesTheShortestDeadline) {
  using namespace std::chrono_literals;
  const std::vector<Member> members = {reduction(1, DType::f32),
                                       reduction(1, DType::f32, ReduceOp::sum, {.deadline = 3s}),
                                       reduction(1, DType::f32, ReduceOp::sum, {.deadline = 5s})};
  EXPECT_EQ(compose(members, 0, 2, {}).front().deadline, 3s);
}

TEST(PackedSides, ShareMemoryWhereTheOperationAllowsIt) {
  Call call;
  call.root = 1;
  const auto of = [&](Op op, int rank) {
    call.op = op;
    const PackedSides sides = packed_sides(call, 10, rank, 3);
    return std::array{sides.in_at, sides.out_at, sides.bytes};
  };
  using Sides = std::array<std::int64_t, 3>;
  EXPECT_EQ(of(Op::all_reduce, 2), (Sides{0, 0, 10}));
  EXPECT_EQ(of(Op::all_gather, 2), (Sides{20, 0, 30}));
  EXPECT_EQ(of(Op::reduce_scatter, 2), (Sides{0, 20, 30}));
  EXPECT_EQ(of(Op::gather, 1), (Sides{10, 0, 30}));
  EXPECT_EQ(of(Op::gather, 0), (Sides{0, 0, 10}));
  EXPECT_EQ(of(Op::all_to_all, 0), (Sides{0, 30, 60}));
}

TEST(Fusion, LayoutTellsListsOfEqualLengthApart) {
  Fusion a, b;
  a.add(reduction(1, DType::f32).call, 0, 2);
  a.add(reduction(3, DType::f32).call, 0, 2);
  b.add(reduction(2, DType::f32).call, 0, 2);
  b.add(reduction(2, DType::f32).call, 0, 2);
  EXPECT_EQ(a.part(), b.part());
  EXPECT_NE(a.layout(), b.layout());
}

TEST(Fusion, AccessesAreThoseOfItsTensors) {
  std::array<float, 64> memory{};
  Fusion fusion;
  Call call;
  call.op = Op::reduce_scatter;
  call.dtype = DType::f32;
  for (const int at : {0, 8, 32}) {  // on rank 0, in place: the output is the beginning of the input
    call.in = call.out = memory.data() + at;
    call.in_count = 8;
    call.out_count = 2;
    fusion.add(call, 0, 4);
  }
  core::Accesses accesses;
  core::find_accesses(fusion, call, 4, accesses);
  std::vector<std::array<std::ptrdiff_t, 3>> found;
  const auto* base = reinterpret_cast<const std::byte*>(memory.data());
  for (const core::Access& access : accesses) found.push_back({access.begin - base, access.end - base, access.write});
  const std::vector<std::array<std::ptrdiff_t, 3>> expected = {
      {0, 64, 0}, {128, 160, 0}, {0, 8, 1}, {32, 40, 1}, {128, 136, 1}};
  EXPECT_EQ(found, expected) << "adjacent inputs are one range";
}

}  // namespace
}  // namespace medley::fuse
