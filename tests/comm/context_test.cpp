// What a context knows about its ranks' places, and how it is made.
#include <gtest/gtest.h>

#include "harness/ranks.hpp"

namespace medley {
namespace {

TEST(Context, KnowsItsPlaceOnItsHost) {
  test::run_processes(3, [](Context& context) {
    EXPECT_EQ(context.local_rank(), context.rank());
    EXPECT_EQ(context.local_size(), 3);
  });
}

TEST(Context, TakesTheNamesOfBackends) {
  const Context braces{"shm"}, list({"shm"}), vector(std::vector<std::string>{"shm"});
  for (const Context* one : {&braces, &list, &vector}) {
    ASSERT_EQ(one->backends().size(), 1u);
    EXPECT_EQ(one->backends()[0].name, "shm");
  }
}

}  // namespace
}  // namespace medley
