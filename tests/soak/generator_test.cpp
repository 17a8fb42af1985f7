// The generator: a seed gives the same program everywhere, every program finishes on the ideal machine, and
// the ideal machine detects stuck and wrong programs.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "soak/generate.hpp"
#include "soak/ideal_machine.hpp"
#include "soak/oracle.hpp"

namespace medley::soak {
namespace {

GenerateOptions small() {
  return {.backends = {"shm", "plain"}, .most_steps = 30, .most_memory = 1 << 16, .most_threads = 3};
}

RC_GTEST_PROP(Generator, the_same_seed_is_the_same_program, ()) {
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const int ranks = *rc::gen::inRange(1, 9);
  RC_ASSERT(to_text(generate(seed, ranks, small())) == to_text(generate(seed, ranks, small())));
}

RC_GTEST_PROP(Generator, every_program_finishes_on_the_ideal_machine_and_has_one_result, ()) {
  const Program program = generate(*rc::gen::arbitrary<std::uint64_t>(), *rc::gen::inRange(1, 9), small());
  const Verdict verdict = run_ideal(program);
  RC_ASSERT(verdict.mistake == "");
  RC_ASSERT(verdict.finishes);
  RC_ASSERT(expect(program).has_value());
}

TEST(Generator, compresses_and_fuses_collectives) {
  int lossless = 0, rounding = 0, lists = 0, scopes = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    for (const Step& step : generate(seed, 3, small()).steps) {
      lossless += step.algorithm == "+lz4" || step.algorithm == "+zstd";
      rounding += rounds(step);
      lists += step.tensors > 0 && !step.in_scope;
      scopes += step.in_scope;
    }
  }
  EXPECT_GT(lossless, 10);
  EXPECT_GT(rounding, 10);
  EXPECT_GT(lists, 10);
  EXPECT_GT(scopes, 10);
}

/// Steps that a rank issues, in order, and whether it drops their Work.
std::vector<std::pair<int, bool>> issued_by(const Program& program, int rank) {
  std::vector<std::pair<int, bool>> issued;
  for (const auto& phase : program.streams[static_cast<std::size_t>(rank)]) {
    for (const auto& stream : phase) {
      for (const Action& action : stream) {
        if (action.act == Act::issue) issued.emplace_back(action.step, action.dropped);
      }
    }
  }
  return issued;
}

// A dropped Work is waited for by a later collective on its memory, and what is waited for is the operation that uses
// that memory. The messages of a step are operations of their own, also the send and the receive of a message to the
// rank itself (programs 36102781 and 36110274 found that), and so are the tensors of a list or a scope: large ones do
// not share a message (program 2921629657).
TEST(Generator, later_collectives_touch_every_dropped_operation) {
  struct Case {
    std::uint64_t seed;
    int ranks;
    std::vector<std::string> backends;
  };
  std::vector<Case> cases{
      {36102781, 2, {"shm", "ucx"}}, {36110274, 2, {"shm", "ucx"}}, {2921629657, 3, {"mpi", "shm"}}};
  for (std::uint64_t seed = 1; seed <= 300; ++seed) cases.push_back({seed, 2, {"shm", "ucx"}});
  int messages = 0, tensors = 0;
  for (const auto& [seed, ranks, backends] : cases) {
    const Program program = generate(seed, ranks, {.backends = backends});
    for (int rank = 0; rank < program.ranks; ++rank) {
      const auto issued = issued_by(program, rank);
      for (std::size_t i = 0; i < issued.size(); ++i) {
        const Step& dropped = program.step(issued[i].first);
        if (!issued[i].second) continue;
        messages += !dropped.packets.empty();
        tensors += dropped.tensors > 1;
        for (const std::vector<Interval>& one : operations(program, dropped, rank)) {
          const bool covered =
              std::any_of(issued.begin() + static_cast<std::ptrdiff_t>(i) + 1, issued.end(), [&](const auto& later) {
                const Step& step = program.step(later.first);
                return !later.second && step.kind == Kind::collective && conflict(one, accesses(program, step, rank));
              });
          EXPECT_TRUE(covered) << "program " << seed << ", rank " << rank << ", step " << issued[i].first;
        }
      }
    }
  }
  EXPECT_GT(messages, 0);  // there are such steps
  EXPECT_GT(tensors, 0);
}

TEST(Generator, the_tensors_of_a_step_are_operations_that_cover_its_memory) {
  const Program program = generate(2921629657, 3, {.backends = {"mpi", "shm"}});
  const Step& step = program.steps[7];
  ASSERT_EQ(step.tensors, 12);
  ASSERT_TRUE(step.in_scope);
  const auto all = operations(program, step, 0);
  ASSERT_EQ(all.size(), 12u);
  std::vector<Interval> end = accesses(program, step, 0);  // input and output
  for (Interval& side : end) side.end = side.begin;
  for (const auto& one : all) {
    ASSERT_EQ(one.size(), end.size());
    for (std::size_t i = 0; i < one.size(); ++i) {
      EXPECT_EQ(one[i].begin, end[i].end);
      EXPECT_EQ(one[i].write, end[i].write);
      end[i].end = one[i].end;
    }
  }
  for (std::size_t i = 0; i < end.size(); ++i) EXPECT_EQ(end[i].end, accesses(program, step, 0)[i].end);
}

RC_GTEST_PROP(Generator, every_rank_does_each_of_its_steps_once, ()) {
  const Program program = generate(*rc::gen::arbitrary<std::uint64_t>(), *rc::gen::inRange(1, 6), small());
  for (int r = 0; r < program.ranks; ++r) {
    std::vector<int> issued(program.steps.size());
    for (const auto& phase : program.streams[static_cast<std::size_t>(r)]) {
      for (const auto& stream : phase) {
        for (const Action& action : stream) issued[static_cast<std::size_t>(action.step)] += action.act == Act::issue;
      }
    }
    for (std::size_t i = 0; i < issued.size(); ++i)
      RC_ASSERT(issued[i] == (takes_part(program, program.steps[i], r) ? 1 : 0));
  }
}

RC_GTEST_PROP(Generator, no_side_leaves_memory, ()) {
  const Program program = generate(*rc::gen::arbitrary<std::uint64_t>(), *rc::gen::inRange(1, 6), small());
  for (const Step& step : program.steps) {
    if (step.kind == Kind::drop || is_comm_maker(step.kind)) continue;
    for (int r = 0; r < program.ranks; ++r) {
      if (!takes_part(program, step, r)) continue;
      for (const Interval& interval : accesses(program, step, r))
        RC_ASSERT(interval.begin >= 0 && interval.end <= program.memory);
    }
  }
}

/// Two ranks, two comms; each rank has one all_reduce on each.
Program two_comms(bool crossed, bool async) {
  Program program;
  program.ranks = 2;
  program.memory = 64;
  program.palette = {DType::i32, DType::i32};
  program.threads = {1};
  program.comms = {{"world", {0, 1}}, {"twin", {0, 1}}};
  for (int comm : {0, 1}) {
    Step step{.kind = Kind::collective, .comm = comm, .op = Op::all_reduce, .dtype = DType::i32, .reduce = sum};
    step.shares.assign(2, {.in = {.at = 8 * comm, .count = 1}, .out = {.at = 8 * comm, .count = 1}});
    program.steps.push_back(step);
  }
  for (int r = 0; r < 2; ++r) {
    const int first = crossed && r == 1 ? 1 : 0;
    Stream stream{{.act = Act::issue, .step = first, .async = async},
                  {.act = Act::issue, .step = 1 - first, .async = async}};
    if (async)
      stream.insert(stream.end(), {{.act = Act::finish, .step = first}, {.act = Act::finish, .step = 1 - first}});
    program.streams.push_back({{stream}});
  }
  return program;
}

TEST(IdealMachine, finishes_in_one_order) { EXPECT_TRUE(run_ideal(two_comms(false, false)).finishes); }
TEST(IdealMachine, is_stuck_when_blocking_calls_cross) {
  const Verdict verdict = run_ideal(two_comms(true, false));
  EXPECT_FALSE(verdict.finishes);
  EXPECT_EQ(verdict.stuck.size(), 2u);
}
TEST(IdealMachine, finishes_when_async_calls_cross) { EXPECT_TRUE(run_ideal(two_comms(true, true)).finishes); }
TEST(IdealMachine, is_stuck_when_async_calls_cross_on_the_same_memory) {
  Program program = two_comms(true, true);
  for (Share& share : program.steps[1].shares) share.in.at = share.out.at = 0;
  EXPECT_FALSE(run_ideal(program).finishes);
}
TEST(IdealMachine, calls_it_wrong_to_touch_memory_of_a_pending_operation) {
  Program program = two_comms(false, true);
  program.steps.push_back({.kind = Kind::touch, .rank = 0, .at = 0, .bytes = 8});
  Stream& stream = program.streams[0][0][0];
  stream.insert(stream.begin() + 1, {.act = Act::issue, .step = 2});
  EXPECT_NE(run_ideal(program).mistake, "");
}

}  // namespace
}  // namespace medley::soak
