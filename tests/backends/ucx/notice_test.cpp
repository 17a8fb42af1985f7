// Notices of an aborted comm: unpacking returns what was packed, and refuses bytes that cannot be a notice. They are
// read inside a callback of UCX, which is C, so nothing may be thrown.
#include "backends/ucx/notice.hpp"

#include <gtest/gtest.h>

#include <memory>

namespace medley::ucx {
namespace {

Notice notice(std::vector<int> ranks, const std::string& sentence) {
  return {7, 3, Error(ErrorKind::rank_lost, sentence, {.ranks = std::move(ranks)})};
}

/// From a block of exactly this size, so that a sanitizer detects a read beyond its end.
std::optional<Notice> unpacked(const std::string& bytes) {
  const auto block = std::make_unique<char[]>(bytes.size());
  std::copy(bytes.begin(), bytes.end(), block.get());
  return Notice::unpack(block.get(), bytes.size());
}

TEST(Notice, ComesOutAsItWentIn) {
  const auto got = unpacked(notice({2, 5}, "rank 2 died").pack());
  ASSERT_TRUE(got);
  EXPECT_EQ(got->comm, 7);
  EXPECT_EQ(got->from, 3);
  EXPECT_EQ(got->why.kind(), ErrorKind::rank_lost);
  EXPECT_EQ(got->why.context().ranks, (std::vector<int>{2, 5}));
  EXPECT_STREQ(got->why.what(), "rank 3 gave up the comm: rank 2 died");
}

TEST(Notice, OfManyRanksAndALongSentenceIsCutShort) {
  std::vector<int> all(1000);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int>(i);
  const std::string bytes = notice(all, std::string(100'000, 'x')).pack();
  EXPECT_LT(bytes.size(), 512u);  // one active message on every transport
  const auto got = unpacked(bytes);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->why.context().ranks, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST(Notice, WithoutRanksBlamesItsSender) {
  const auto got = unpacked(notice({}, "no reason").pack());
  ASSERT_TRUE(got);
  EXPECT_EQ(got->why.context().ranks, std::vector<int>{3});
}

TEST(Notice, ThatIsTooShortIsNone) {
  const std::string header = notice({1}, "").pack();
  for (std::size_t bytes = 0; bytes < header.size(); ++bytes) EXPECT_FALSE(unpacked(header.substr(0, bytes))) << bytes;
  EXPECT_TRUE(unpacked(header));
}

TEST(Notice, OfAnyBytesIsReadWithinThem) {
  for (const char filling : {'\0', '\1', '\x7f', '\x80', '\xff'}) {
    for (const std::size_t bytes : {0, 1, 43, 44, 45, 64, 444, 10'000}) {
      const auto got = unpacked(std::string(bytes, filling));
      const std::size_t ranks = got ? got->why.context().ranks.size() : 0;
      EXPECT_LE(ranks, 8u) << bytes << " bytes of " << static_cast<int>(filling);
    }
  }
}

}  // namespace
}  // namespace medley::ucx
