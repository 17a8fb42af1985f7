// Routes over two libraries on CUDA memory, over the mock of CUDA and NCCL, on two hosts of two ranks. Pairs: nccl
// inside a host, and gloo (staged) or nccl between hosts. A split: nccl and gloo (staged) at once.
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <medley/sdk/device.hpp>
#include <numeric>

#include "harness/two_hosts.hpp"

namespace medley {
namespace {

using namespace std::chrono_literals;
using test::places;
constexpr int ranks = test::ranks_on_hosts;
const std::vector<std::string> backends{"nccl", "gloo", "shm", "nccl+gloo", "nccl+nccl", "nccl|gloo"};

bool on_two_hosts(const test::Body& body) {
  setenv("MEDLEY_CUDA", "1", 1);
  setenv("MEDLEY_BACKEND_PATH", MOCK_BACKENDS, 1);
  return test::on_two_hosts(backends, body);
}

Device& device() {
  static auto* const opened = open_device(0).release();  // never closed: the context may use it to the end
  return *opened;
}

/// Numbers on the device.
class Numbers {
 public:
  explicit Numbers(std::vector<std::int32_t> values)
      : host_(std::move(values)), bytes_(std::max<std::size_t>(host_.size() * 4, 4)) {
    data_ = device().allocate(bytes_);
    if (!host_.empty()) device().copy_now(data_, host_.data(), host_.size() * 4);
  }
  Numbers(std::size_t count, std::int32_t value) : Numbers(std::vector<std::int32_t>(count, value)) {}
  Numbers(const Numbers&) = delete;
  Numbers& operator=(const Numbers&) = delete;
  ~Numbers() {
    read();  // what the default stream waits for may still use it
    device().free(data_);
  }
  Buffer buffer() const { return {data_, static_cast<std::int64_t>(host_.size()), DType::i32, Memory::cuda, 0}; }
  const std::vector<std::int32_t>& read() {
    if (!host_.empty()) device().copy_now(host_.data(), data_, host_.size() * 4);
    return host_;
  }

 private:
  std::vector<std::int32_t> host_;
  std::size_t bytes_;
  void* data_;
};

std::vector<std::int32_t> counting(std::size_t count, int from) {
  std::vector<std::int32_t> values(count);
  std::iota(values.begin(), values.end(), from);
  return values;
}

void reductions(Comm& world, std::size_t count, const Options& over) {
  const int rank = world.rank();
  Numbers values(counting(count, rank)), sums(count, -1);
  world.all_reduce(values.buffer(), sums.buffer(), sum, over);
  std::vector<std::int32_t> expected = counting(count, 0);
  for (std::int32_t& value : expected) value = ranks * value + 6;
  ASSERT_EQ(sums.read(), expected);
  world.all_reduce(values.buffer(), max, over);  // in place
  ASSERT_EQ(values.read(), counting(count, 3));
  Options fixed = over;
  fixed.deterministic = true;
  world.all_reduce(values.buffer(), bxor, fixed);  // by our kernel inside the host
  ASSERT_EQ(values.read(), std::vector<std::int32_t>(count, 0));
  Numbers whole(counting(count * ranks, rank)), part(count, -1);
  world.reduce_scatter(whole.buffer(), part.buffer(), sum, over);
  for (std::int32_t& value : expected) value += ranks * rank * static_cast<int>(count);
  ASSERT_EQ(part.read(), expected);
  Numbers mine(count, rank), total(rank == 1 ? count : 0, -1);
  world.reduce(mine.buffer(), total.buffer(), sum, 1, over);  // over the second library alone
  if (rank == 1) {
    ASSERT_EQ(total.read(), std::vector<std::int32_t>(count, 6));
  }
}

void exchanges(Comm& world, std::size_t count, const Options& over) {
  const int rank = world.rank(), n = static_cast<int>(count);
  Numbers part(counting(count, 1000 * rank)), whole(count * ranks, -1), taken(count * ranks, -1);
  world.all_gather(part.buffer(), whole.buffer(), over);
  std::vector<std::int32_t> gathered, given, received;
  for (int r = 0; r < ranks; ++r) {
    for (int i = 0; i < n; ++i) gathered.push_back(1000 * r + i);
    for (int i = 0; i < n; ++i) given.push_back(10000 * rank + 1000 * r + i);
    for (int i = 0; i < n; ++i) received.push_back(10000 * r + 1000 * rank + i);
  }
  ASSERT_EQ(whole.read(), gathered);
  Numbers to_all(given);
  world.all_to_all(to_all.buffer(), taken.buffer(), over);
  ASSERT_EQ(taken.read(), received);
  for (int root = 0; root < ranks; ++root) {
    Numbers tensor(rank == root ? counting(count, root + 7) : std::vector<std::int32_t>(count, -1));
    world.broadcast(tensor.buffer(), root, over);
    ASSERT_EQ(tensor.read(), counting(count, root + 7));
  }
}

class CudaPair : public testing::TestWithParam<std::string> {};

TEST_P(CudaPair, gives_what_one_backend_gives) {
  if (!on_two_hosts([](Context& context) {
        Comm world = context.world();
        // The last one is staged in several pieces
        for (const std::size_t count : {0, 1, 2, 3, 64, 10'007, 1'300'000}) {
          reductions(world, count, {.backend = GetParam()});
          if (count < 1'000'000) exchanges(world, count, {.backend = GetParam()});
        }
        world.barrier({.backend = GetParam()});
        world.barrier(Memory::cuda, {.backend = GetParam()}).wait_host();
      })) {
    GTEST_SKIP() << test::no_hosts;
  }
}

TEST_P(CudaPair, carries_messages_lists_and_uneven_parts_over_its_second_half) {
  if (!on_two_hosts([](Context& context) {
        Comm world = context.world();
        const Options over{.backend = GetParam()};
        const int rank = world.rank(), next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
        Numbers out(1000, rank), in(1000, -1);
        Work received = world.recv(in.buffer(), previous, {.backend = GetParam(), .async = true});
        world.send(out.buffer(), next, over);
        received.wait();
        EXPECT_EQ(in.read(), std::vector<std::int32_t>(1000, previous));
        Numbers a(10, 1), b(300, 2);
        std::vector<Buffer> list{a.buffer(), b.buffer()};
        world.all_reduce(list, sum, over);
        EXPECT_EQ(a.read()[9] + b.read()[299], 12);
        const std::vector<std::int64_t> counts{1, 2, 3, 4};
        Numbers mine(static_cast<std::size_t>(rank) + 1, rank), all(10, -1);
        world.all_gatherv(mine.buffer(), all.buffer(), {counts}, over);
        EXPECT_EQ(all.read(), (std::vector<std::int32_t>{0, 1, 1, 2, 2, 2, 3, 3, 3, 3}));
      })) {
    GTEST_SKIP() << test::no_hosts;
  }
}

TEST_P(CudaPair, takes_turns_with_other_backends_on_the_same_memory) {
  if (!on_two_hosts([](Context& context) {
        Comm world = context.world(), other = world.dup();
        Numbers a(40'000, 1), b(40'000, 1), gathered(40'000 * ranks, 0);
        std::vector<Work> works;
        for (const std::string& backend :
             {GetParam(), std::string("nccl"), GetParam(), std::string("gloo"), std::string("nccl"), GetParam()}) {
          works.push_back(world.all_reduce(a.buffer(), sum, {.backend = backend, .async = true}));
          works.push_back(other.all_reduce(b.buffer(), max, {.backend = "nccl", .async = true}));
        }
        // The result of a scatter, whose last phase is between hosts, is the input of a gather, whose first phase is
        // too.
        Numbers part(10'000, 0);
        works.push_back(world.reduce_scatter(a.buffer(), part.buffer(), max, {.backend = GetParam(), .async = true}));
        works.push_back(other.all_gather(part.buffer(),
                                         Buffer(gathered.buffer().data, 40'000, DType::i32, Memory::cuda, 0),
                                         {.backend = GetParam(), .async = true}));
        works.push_back(world.all_reduce(Buffer(gathered.buffer().data, 40'000, DType::i32, Memory::cuda, 0), sum,
                                         {.backend = GetParam(), .async = true}));
        for (auto work = works.rbegin(); work != works.rend(); ++work) work->wait();
        EXPECT_EQ(a.read(), std::vector<std::int32_t>(40'000, 4096));
        EXPECT_EQ(gathered.read()[39'999], 4 * 4096);
        EXPECT_EQ(b.read()[0], 1);
      })) {
    GTEST_SKIP() << test::no_hosts;
  }
}

// The all_reduce of the world waits for ranks 2 and 3, which begin it after a message that needs the result of the comm
// of 0 and 1. That comm's collective comes later in the order of launches, so it is held, but not for ever.
TEST_P(CudaPair, lets_a_later_collective_pass_whose_result_the_missing_ranks_wait_for) {
  if (!on_two_hosts([](Context& context) {
        Comm world = context.world(), host = world.split(context.rank() / places, context.rank());
        Numbers a(1000, 1), b(1000, 1), news(10, context.rank());
        if (context.rank() < places) {
          Work all = world.all_reduce(a.buffer(), sum, {.backend = GetParam(), .async = true});
          host.all_reduce(b.buffer(), sum, {.backend = "nccl", .async = true}).wait_host();
          world.send(news.buffer(), context.rank() + places, {.backend = "gloo"});
          all.wait();
        } else {
          world.recv(news.buffer(), context.rank() - places, {.backend = "gloo"});
          world.all_reduce(a.buffer(), sum, {.backend = GetParam()});
        }
        EXPECT_EQ(a.read(), std::vector<std::int32_t>(1000, ranks));
      })) {
    GTEST_SKIP() << test::no_hosts;
  }
}

TEST_P(CudaPair, ends_with_an_error_on_all_ranks_when_one_is_missing_in_any_phase) {
  if (!on_two_hosts([](Context& context) {
        Comm world = context.world();
        for (const int missing : {0, 3}) {
          for (const std::size_t count : {1'000u, 1'300'000u}) {
            Comm victim = world.dup();
            Numbers a(count, 1), b(count * ranks, 1);
            if (context.rank() != missing) {
              std::vector<Work> works;
              const auto must_fail = [&](const std::function<void()>& call) {
                try {
                  call();
                  ADD_FAILURE() << "a collective without rank " << missing << " completed";
                } catch (const Error& error) {
                  EXPECT_EQ(error.kind(), ErrorKind::timeout) << error.what();
                }
              };
              const Options over{.backend = GetParam(), .async = true, .deadline = 300ms};
              must_fail([&] {  // the first may have failed on another rank before the second is issued
                works.push_back(victim.all_gather(a.buffer(), b.buffer(), over));
                works.push_back(victim.all_reduce(a.buffer(), sum, over));
                works.back().wait_host();
              });
              for (Work& work : works) must_fail([&] { work.wait_host(); });
            }
            a.read();  // the device is free again: a kernel that waits would block this
            world.barrier({.backend = "gloo"});
            Numbers c(count, 1);
            world.all_reduce(c.buffer(), sum, {.backend = GetParam()});  // another comm is not affected
            EXPECT_EQ(c.read()[count - 1], ranks);
          }
        }
      })) {
    GTEST_SKIP() << test::no_hosts;
  }
}

TEST(CudaPairRoutes, are_chosen_by_rules_and_refused_where_they_do_not_apply) {
  if (!on_two_hosts([](Context& context) {
        Comm world = context.world(), ruled = world.dup({.rules = "all_reduce:1M-@cuda=nccl+gloo"});
        Numbers a(300'000, 1);
        ruled.all_reduce(a.buffer(), sum);
        EXPECT_EQ(a.read()[299'999], ranks);
        std::vector<float> on_host(4, 1);
        EXPECT_THROW(world.all_reduce(on_host, sum, {.backend = "nccl+gloo"}), Error);
        EXPECT_THROW(world.all_reduce(a.buffer(), sum, {.backend = "nccl+gloo", .algorithm = "ring"}), Error);
        Comm host = world.split(context.rank() / places, context.rank());
        EXPECT_THROW(host.all_reduce(a.buffer(), sum, {.backend = "nccl+gloo"}), Error);
        world.barrier({.backend = "gloo"});
      })) {
    GTEST_SKIP() << test::no_hosts;
  }
}

INSTANTIATE_TEST_SUITE_P(over, CudaPair, testing::Values("nccl+gloo", "nccl+nccl", "nccl|gloo"), [](const auto& of) {
  return of.param == "nccl|gloo" ? "split" : of.param == "nccl+gloo" ? "gloo" : "nccl";
});

}  // namespace
}  // namespace medley
