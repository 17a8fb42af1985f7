// Overlaps among collected tensors, against a map of single bytes.
#include <gtest/gtest.h>

#include <array>
#include <random>

#include "fuse/footprint.hpp"

namespace medley::fuse {
namespace {

TEST(Footprint, FindsTheSameConflictsAsAMapOfBytes) {
  std::mt19937 random(25);
  std::array<std::byte, 200> memory{};
  const auto draw = [&](int below) { return static_cast<int>(random() % static_cast<unsigned>(below)); };
  for (int round = 0; round < 300; ++round) {
    Footprint footprint;
    std::array<char, 200> touched{};  // 1: read, 2: written
    for (int step = 0; step < 40; ++step) {
      Call call;
      call.dtype = DType::u8;
      const int in = draw(190), in_count = draw(10), out = draw(190), out_count = draw(10);
      call.in = memory.data() + in;
      call.in_count = in_count;
      call.out = memory.data() + out;
      call.out_count = out_count;
      bool expected = false;
      for (int i = in; i < in + in_count; ++i) expected = expected || touched[static_cast<std::size_t>(i)] == 2;
      for (int i = out; i < out + out_count; ++i) expected = expected || touched[static_cast<std::size_t>(i)] != 0;
      ASSERT_EQ(footprint.conflicts(call), expected) << "round " << round << ", step " << step;
      if (expected) continue;
      footprint.add(call);
      for (int i = in; i < in + in_count; ++i) touched[static_cast<std::size_t>(i)] = 1;
      for (int i = out; i < out + out_count; ++i) touched[static_cast<std::size_t>(i)] = 2;
    }
  }
}

/// Lists are checked by sorting, and by a footprint only where that finds something.
TEST(Overlaps, MissNoConflictOfAFootprint) {
  std::mt19937 random(26);
  std::array<std::byte, 400> memory{};
  const auto draw = [&](int below) { return static_cast<int>(random() % static_cast<unsigned>(below)); };
  int conflicts = 0, free = 0;
  for (int round = 0; round < 2000; ++round) {
    Footprint footprint;
    Overlaps overlaps;
    bool expected = false, in_place_in_part = false;
    for (int step = 0; step < 6; ++step) {
      Call call;
      call.dtype = DType::u8;
      const int in = draw(390), in_count = draw(10), out = step % 2 == 0 ? in : draw(390),
                out_count = step % 2 == 0 ? in_count : draw(10);
      call.in = memory.data() + in;
      call.in_count = in_count;
      call.out = memory.data() + out;
      call.out_count = out_count;
      in_place_in_part = in_place_in_part || (in != out && in < out + out_count && out < in + in_count);
      expected = expected || footprint.conflicts(call);
      footprint.add(call);
      overlaps.add(call);
    }
    const bool found = overlaps.any();
    EXPECT_TRUE(found || !expected) << "round " << round;
    if (!in_place_in_part) {
      EXPECT_EQ(found, expected) << "round " << round;
    }
    expected ? ++conflicts : ++free;
  }
  EXPECT_GT(conflicts, 100);
  EXPECT_GT(free, 100);
}

}  // namespace
}  // namespace medley::fuse
