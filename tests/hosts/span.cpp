// A rank of a job on several hosts, started by span.sh. Checks which backends serve which comm and what the
// others report. SPAN_EACH gives the number of ranks per host.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <medley/medley.hpp>
#include <string>

namespace medley {
namespace {

int each_host() { return std::atoi(std::getenv("SPAN_EACH")); }

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

TEST(Span, messages_of_exact_size_stay_inside_a_host) {
  Context context({.backends = {"shm", "gloo"}, .deadline = std::chrono::seconds(30)});
  Comm comm = context.world().dup({.exact = true});
  std::vector<Work> works;
  std::vector<std::vector<int>> out, in;
  out.reserve(static_cast<std::size_t>(3 * comm.size()));
  in.reserve(out.capacity());
  for (int peer = 0; peer < comm.size(); ++peer) {
    for (const std::size_t count : {1, 3'000, 1}) {
      out.emplace_back(count, 100 * comm.rank() + peer);
      works.push_back(comm.send(out.back(), peer, {.async = true}));
    }
  }
  for (int peer = 0; peer < comm.size(); ++peer) {
    for (const std::size_t count : {1, 3'000, 1}) {
      in.emplace_back(count);
      const Work came = comm.recv(in.back(), peer);
      EXPECT_EQ(came.source(), peer);
      EXPECT_EQ(in.back(), std::vector<int>(count, 100 * peer + comm.rank()));
    }
  }
  for (Work& work : works) work.wait();
  comm.barrier();
  // The lane is what an error names.
  const auto wrong = [&](int from, int to) {
    Comm own = comm.dup();
    try {
      const std::vector<int> two(2);
      std::vector<int> three(3);
      if (own.rank() == from) own.send(two, to);
      if (own.rank() == to) own.recv(three, from);
      for (;;) own.barrier();
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  if (each_host() > 1) {
    const std::string text = wrong(each_host(), each_host() + 1);
    const std::string names[] = {std::to_string(each_host()), std::to_string(each_host() + 1)};
    EXPECT_NE(text.find("over shm inside hosts: rank " + names[0] + " sent 8 bytes with tag 0 but rank " + names[1] +
                        " posted a receive of 12 bytes"),
              std::string::npos)
        << text;
    EXPECT_THROW(comm.recv(in.front(), any_source), Error);
  }
  const std::string text = wrong(0, each_host());
  EXPECT_NE(text.find("over gloo: rank 0 sent 8 bytes"), std::string::npos) << text;
  context.world().barrier();
}

TEST(Span, a_comm_that_no_backend_serves_is_refused_with_the_reason) {
  const std::string why = refusal([] { Context context(std::vector<std::string>{"shm"}); });
  EXPECT_NE(why.find("comm world: no backend can serve it: shm serves one host, and ranks 0 and"), std::string::npos)
      << why;
}

}  // namespace
}  // namespace medley
