// What a build says about itself: shm is always there and does its collectives itself.
#include "info/info.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace medley {
namespace {

TEST(BuildInfo, ShmIsAvailableAndNative) {
  const BuildInfo info = build_info();
  EXPECT_FALSE(info.version.empty());
  EXPECT_GE(info.cores, 1);
  const auto shm =
      std::find_if(info.backends.begin(), info.backends.end(), [](const auto& b) { return b.info.name == "shm"; });
  ASSERT_NE(shm, info.backends.end());
  EXPECT_TRUE(shm->info.available) << shm->info.reason;
  EXPECT_TRUE(shm->does(Op::all_reduce));
  EXPECT_EQ(shm->memory.front(), Memory::host);
}

TEST(BuildInfo, AsJsonListsOperationsOfAvailableBackendsAlone) {
  BuildInfo info{.version = "1", .host = "here", .cores = 2, .backends = {}};
  info.backends.resize(2);
  info.backends[0].info.name = "there";
  info.backends[0].info.available = true;
  info.backends[0].native[static_cast<std::size_t>(Op::broadcast)] = true;
  info.backends[1].info.name = "absent";
  info.backends[1].info.reason = "no library";
  const auto json = to_json(info);
  EXPECT_EQ(json["operations"].size(), static_cast<std::size_t>(op_count));
  EXPECT_EQ(json["backends"][0]["ops"]["broadcast"], "native");
  EXPECT_EQ(json["backends"][0]["ops"]["all_reduce"], "filled");
  EXPECT_TRUE(json["backends"][1]["ops"].empty());
  EXPECT_EQ(json["backends"][1]["reason"], "no library");
}

}  // namespace
}  // namespace medley
