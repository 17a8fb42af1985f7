// The numbers of comms: unique while alive, reused only when no member can send to them any more.
#include "backends/ucx/comm_ids.hpp"

#include <gtest/gtest.h>

#include <medley/error.hpp>
#include <set>

namespace medley::ucx {
namespace {

TEST(CommIds, are_different_while_alive_and_there_are_65536) {
  CommIds ids;
  std::set<int> seen;
  for (int i = 0; i < max_comms; ++i) EXPECT_TRUE(seen.insert(ids.take()).second);
  EXPECT_THROW(ids.take(), Error);
}

TEST(CommIds, serve_again_only_after_all_members_left_and_old_messages_are_dropped) {
  CommIds ids;
  for (int i = 0; i < max_comms; ++i) ids.take();
  bool left = false;
  std::vector<int> dropped;
  const auto drop = [&](std::uint16_t id) { dropped.push_back(id); };
  ids.retire(7, [&] { return left; });
  ids.reclaim(drop);
  EXPECT_THROW(ids.take(), Error);
  EXPECT_TRUE(dropped.empty());
  left = true;
  ids.reclaim(drop);
  EXPECT_EQ(dropped, std::vector<int>{7});
  EXPECT_EQ(ids.take(), 7);
}

TEST(CommIds, of_slow_members_do_not_keep_those_of_others) {
  CommIds ids;
  for (int i = 0; i < max_comms; ++i) ids.take();
  ids.retire(1, [] { return false; });
  ids.retire(2, [] { return true; });
  ids.reclaim([](std::uint16_t) {});
  EXPECT_EQ(ids.take(), 2);
}

TEST(CommIds, are_not_asked_about_while_half_were_never_used) {
  CommIds ids;
  const std::uint16_t id = ids.take();
  ids.retire(id, []() -> bool {
    ADD_FAILURE() << "the store was asked for nothing";
    return true;
  });
  ids.reclaim([](std::uint16_t) {});
  EXPECT_NE(ids.take(), id);
}

TEST(Tag, keeps_comm_sender_and_every_tag_apart) {
  for (int tag : {0, 1, 65536, 2147483647, -1, -32768}) {
    EXPECT_EQ(source_of(make_tag(9, 1234, tag)), 1234);
    EXPECT_EQ(make_tag(9, 1234, tag) & comm_mask, make_tag(9, 0, 0));
    EXPECT_EQ(make_tag(9, 1234, tag) & any_source_mask, make_tag(9, 0, tag));
    EXPECT_NE(make_tag(9, 1234, tag), make_tag(9, 1234, tag ^ 2));
  }
}

}  // namespace
}  // namespace medley::ucx
