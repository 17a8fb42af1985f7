// A rank of a job on several hosts, started by span.sh. Checks which backends serve which comm and what the
// others report. SPAN_EACH gives the number of ranks per host.
#include <gtest/gtest.h>

#include <cstdlib>
#include <medley/medley.hpp>
#include <string>

namespace medley {
namespace {

int each_host() {
  return std::atoi(std::getenv("SPAN_EACH"));
}

void expect_sum(Comm& comm, const char* backend) {
  std::vector<std::int64_t> values(5'000, comm.rank() + 1);
  comm.all_reduce(values, sum, {.backend = backend});
  const std::int64_t n = comm.size();
  EXPECT_EQ(values, std::vector<std::int64_t>(values.size(), n * (n + 1) / 2)) << backend;
}

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unavailable) << error.what();
    return error.what();
  }
  return "nothing was refused";
}

TEST(Span, a_comm_across_hosts_leaves_shm_out_and_says_why_when_it_is_named) {
  Context context(std::vector<std::string>{"shm", "gloo"});
  Comm world = context.world();
  expect_sum(world, "");
  expect_sum(world, "gloo");
  const std::string why = refusal([&] { expect_sum(world, "shm"); });
  const std::string first_elsewhere = std::to_string(each_host());
  EXPECT_NE(why.find("all_reduce on comm world: shm serves one host, and ranks 0 and " + first_elsewhere +
                     " are on different ones; this comm has gloo"),
            std::string::npos)
      << why;
  world.barrier();
}

TEST(Span, a_comm_of_one_host_has_both) {
  Context context(std::vector<std::string>{"shm", "gloo"});
  Comm world = context.world();
  Comm neighbours = world.split(world.rank() / each_host(), world.rank());
  ASSERT_EQ(neighbours.size(), each_host());
  expect_sum(neighbours, "");
  expect_sum(neighbours, "shm");
  expect_sum(neighbours, "gloo");
  world.barrier();
}

TEST(Span, a_comm_that_no_backend_serves_is_refused_with_the_reason) {
  const std::string why = refusal([] { Context context(std::vector<std::string>{"shm"}); });
  EXPECT_NE(why.find("comm world: no backend can serve it: shm serves one host, and ranks 0 and"),
            std::string::npos)
      << why;
}

}  // namespace
}  // namespace medley
