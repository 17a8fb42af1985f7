// Rule strings: their meaning, what is refused, and that ranks must agree on them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/ranks.hpp"

namespace medley {
namespace {

using ::testing::HasSubstr;

std::string chosen(const Rules& rules, Op op, std::int64_t bytes, Memory memory = Memory::host) {
  const Choice* choice = rules.choose(op, bytes, memory);
  if (!choice) return "none";
  return choice->algorithm.empty() ? choice->backend : choice->backend + "/" + choice->algorithm;
}

TEST(Rules, TheFirstThatFitsCounts) {
  const Rules rules =
      Rules::parse(" all_reduce:0-4k = shm ; allreduce=mpi/ring; all_to_all:1M-=ucx;*@cuda=nccl;*=gloo;");
  EXPECT_EQ(chosen(rules, Op::all_reduce, 4), "shm");
  EXPECT_EQ(chosen(rules, Op::all_reduce, 4096), "shm");
  EXPECT_EQ(chosen(rules, Op::all_reduce, 4097), "mpi/ring");
  EXPECT_EQ(chosen(rules, Op::all_to_all, (1 << 20) - 1), "gloo");
  EXPECT_EQ(chosen(rules, Op::all_to_all, 1 << 20), "ucx");
  EXPECT_EQ(chosen(rules, Op::broadcast, 9, Memory::cuda), "nccl");
  EXPECT_EQ(chosen(rules, Op::send, 9), "gloo");
  EXPECT_EQ(chosen(Rules::parse("barrier=shm"), Op::broadcast, 1), "none");
}

TEST(Rules, SendsAndReceivesGoTheSameWay) {
  for (const char* word : {"send", "recv", "p2p"}) {
    const Rules rules = Rules::parse(std::string(word) + "=ucx");
    EXPECT_EQ(chosen(rules, Op::send, 1), "ucx") << word;
    EXPECT_EQ(chosen(rules, Op::recv, 1 << 30), "ucx") << word;
  }
  const Rules sized = Rules::parse("*:0-1K=shm;*=mpi");  // sizes apply to collectives only
  EXPECT_EQ(chosen(sized, Op::send, 4), "mpi");
  EXPECT_EQ(chosen(sized, Op::all_reduce, 4), "shm");
}

TEST(Rules, OneSpellingForEqualRules) {
  const std::string text = Rules::parse(" allreduce : 0-4k=shm ;; * = mpi / ring").text();
  EXPECT_EQ(text, "all_reduce:0-4096=shm;*=mpi/ring");
  EXPECT_EQ(Rules::parse(text).text(), text);
  EXPECT_EQ(Rules::parse("").text(), "");
}

TEST(Rules, WhatIsRefused) {
  const auto refusal = [](const char* text) -> std::string {
    try {
      Rules::parse(text);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::invalid);
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(refusal("all_reduce"), HasSubstr("names no backend"));
  EXPECT_THAT(refusal("all_reduce="), HasSubstr("names no backend"));
  EXPECT_THAT(refusal("all_reduce=shm/"), HasSubstr("no algorithm"));
  EXPECT_THAT(refusal("*=shm;al_reduce=mpi"), HasSubstr("rule \"al_reduce=mpi\": \"al_reduce\" is not an operation"));
  EXPECT_THAT(refusal("all_reduce:4k=shm"), HasSubstr("not a range"));
  EXPECT_THAT(refusal("all_reduce:4x-8k=shm"), HasSubstr("\"4x\" is not a size"));
  EXPECT_THAT(refusal("all_reduce:8k-4k=shm"), HasSubstr("8k is more than 4k"));
  EXPECT_THAT(refusal("all_reduce@tpu=shm"), HasSubstr("neither host nor cuda"));
}

TEST(Rules, route_messages_by_size_only_where_sizes_are_exact) {
  const Rules rules = Rules::parse("p2p:0-4k=shm;*:8k-=mpi;send=ucx");
  EXPECT_EQ(rules.choose(Op::recv, 100)->backend, "ucx");
  EXPECT_EQ(rules.choose(Op::recv, 100, Memory::host, true)->backend, "shm");
  EXPECT_EQ(rules.choose(Op::send, 5'000, Memory::host, true)->backend, "ucx");
  EXPECT_EQ(rules.choose(Op::send, 9'000, Memory::host, true)->backend, "mpi");
}

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Rules, DecideTheAlgorithmOfAComm) {
  test::run_threads(2, [](Context& context) {
    Comm ringed = context.world().dup({.rules = "all_reduce:8-=shm/ring;*=shm"});
    std::vector<float> values(100, 1.0f);
    ringed.all_reduce(values, sum);
    EXPECT_EQ(values[99], 2.0f);
    Comm wrong = context.world().dup({.rules = "all_reduce=shm/spiral"});
    EXPECT_THAT(error_of([&] { wrong.all_reduce(values, sum); }), HasSubstr("no algorithm \"spiral\""));
  });
}

TEST(Rules, OfAnotherRankOrUnknownBackendsAreErrors) {
  test::run_threads(2, [](Context& context) {
    Comm world = context.world();
    const std::string mixed = error_of([&] { world.dup({.rules = world.rank() == 0 ? "*=shm" : "barrier=shm"}); });
    EXPECT_THAT(mixed, HasSubstr("rank 0 gives the rules \"*=shm\" but rank 1 gives \"barrier=shm\""));
    EXPECT_THAT(error_of([&] { world.dup({.rules = "*=pigeon"}); }), HasSubstr("a rule names backend pigeon"));
    world.barrier();
  });
}

TEST(Rules, OfAContextMustAgree) {
  const auto store = make_local_store();
  std::vector<std::string> errors(2);
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    ranks.emplace_back([&, rank] {
      ContextOptions options = test::options_of(rank, 2, store);
      options.rules = rank == 0 ? "*=shm" : "";
      errors[static_cast<std::size_t>(rank)] = error_of([&] { Context context(options); });
    });
  }
  for (std::thread& rank : ranks) rank.join();
  for (const std::string& error : errors) {
    EXPECT_THAT(error, HasSubstr("rank 0 has the rules \"*=shm\" but rank 1 has \"\""));
  }
}

}  // namespace
}  // namespace medley
