// What CUDA memory adds to the guarantees: streams wait instead of the host, one memory order across
// backends, errors where a library lacks support, and failures that also end what runs on the device.
#include <algorithm>
#include <numeric>
#include <optional>

#include "conformance/errors.hpp"
#include "conformance/run_case.hpp"

namespace medley::conformance {
namespace {

using namespace std::chrono_literals;

/// Numbers on the device.
class Numbers {
 public:
  Numbers(std::size_t count, std::int64_t value) : host_(count, value), image_(count * sizeof(std::int64_t)) {
    image_.write(reinterpret_cast<const std::byte*>(host_.data()));
  }
  Buffer buffer() const {
    return {image_.data(), static_cast<std::int64_t>(host_.size()), DType::i64, Memory::cuda, 0};
  }
  const std::vector<std::int64_t>& values() {
    image_.read(reinterpret_cast<std::byte*>(host_.data()));
    return host_;
  }
  void expect(std::int64_t value) { EXPECT_EQ(values(), std::vector<std::int64_t>(host_.size(), value)); }

 private:
  std::vector<std::int64_t> host_;
  DeviceImage image_;
};

class Cuda : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (!on_device()) GTEST_SKIP() << "only with MEDLEY_TEST_MEMORY=cuda";
  }
};

TEST_P(Cuda, wait_orders_the_stream_and_wait_host_the_host) {
  with_ranks(GetParam(), [](Comm& comm) {
    for (std::size_t count : {1u, 3'000u, 700'000u}) {
      Numbers a(count, comm.rank() + 1);
      Work work = comm.all_reduce(a.buffer(), sum, {.async = true});
      work.wait();
      a.expect(comm.size() * (comm.size() + 1) / 2);
      Work again = comm.all_reduce(a.buffer(), max);  // blocking: its stream waits
      again.wait_host();
      EXPECT_TRUE(again.complete());
      EXPECT_EQ(again.error(), nullptr);
      a.expect(comm.size() * (comm.size() + 1) / 2);
    }
    comm.barrier();
  });
}

TEST_P(Cuda, another_stream_than_that_of_the_issue_can_wait) {
  with_ranks(GetParam(), [](Comm& comm) {
    void* const own = test_device().make_stream();  // the legacy stream, which reads the numbers, does not wait for it
    for (std::size_t count : {1u, 3'000u, 700'000u}) {
      Numbers a(count, comm.rank() + 1);
      Work work = comm.all_reduce(a.buffer(), sum, {.async = true, .stream = own});
      EXPECT_TRUE(work.wait_in(nullptr, 30s));
      a.expect(comm.size() * (comm.size() + 1) / 2);
      EXPECT_TRUE(work.wait_in(own, 30s));
    }
    comm.barrier();
  });
}

TEST_P(Cuda, a_barrier_may_come_after_a_stream) {
  with_ranks(GetParam(), [](Comm& comm) {
    Numbers a(700'000, comm.rank() + 1);
    comm.all_reduce(a.buffer(), sum);
    Work work = comm.barrier(Memory::cuda, {.async = true});
    work.wait_host();
    EXPECT_TRUE(work.complete());
    a.expect(comm.size() * (comm.size() + 1) / 2);
  });
}

// Destroying a comm must not wait for another comm's kernel, which waits for a rank that waits for this one.
TEST_P(Cuda, a_comm_goes_while_an_operation_of_another_waits) {
  with_ranks(GetParam(), [](Comm& comm) {
    Numbers a(5'000, 1), b(1, 1);
    const auto tell_rank_0 = [&] {
      if (comm.rank() != 0) return comm.send(b.buffer(), 0).wait_host();
      for (int from = 1; from < comm.size(); ++from) comm.recv(b.buffer(), from, {.async = true}).wait_host();
    };
    tell_rank_0();  // the first messages, which connect
    for (int turn = 0; turn < 3; ++turn) {
      std::optional<Comm> other = comm.dup();
      Work work;
      if (comm.rank() != 0) work = comm.all_reduce(a.buffer(), sum, {.async = true});
      other.reset();
      tell_rank_0();
      if (comm.rank() == 0) work = comm.all_reduce(a.buffer(), sum, {.async = true});
      work.wait();
    }
    comm.barrier();
  });
}

TEST_P(Cuda, operations_on_the_same_memory_take_effect_in_the_order_of_issue) {
  with_ranks(GetParam(), [](Comm& comm) {
    Comm other = comm.dup();
    const int n = comm.size(), me = comm.rank(), next = (me + 1) % n, previous = (me + n - 1) % n;
    for (std::size_t count : {1u, 5'000u, 400'000u}) {
      Numbers a(count, me + 1), b(count, 0), c(count * static_cast<std::size_t>(n), -1);
      std::vector<Work> works;
      works.push_back(comm.all_reduce(a.buffer(), sum, {.async = true}));
      works.push_back(other.all_reduce(a.buffer(), a.buffer(), max, {.async = true}));
      works.push_back(comm.send(a.buffer(), next, {.async = true}));
      works.push_back(other.all_reduce(a.buffer(), sum, {.async = true}));
      works.push_back(comm.recv(b.buffer(), previous, {.async = true}));
      works.push_back(other.all_gather(b.buffer(), c.buffer(), {.async = true}));
      works.push_back(comm.all_reduce(b.buffer(), a.buffer(), sum, {.async = true}));
      std::rotate(works.begin(), works.begin() + 3, works.end());
      for (Work& work : works) work.wait();
      const std::int64_t first = std::int64_t{n} * (n + 1) / 2;
      b.expect(first);
      c.expect(first);
      a.expect(first * n);
    }
    comm.barrier();
  });
}

TEST_P(Cuda, backends_take_turns_on_the_same_memory) {
  if (backends_under_test().size() < 2) GTEST_SKIP() << "needs a second backend";
  with_ranks(GetParam(), [](Comm& comm) {
    const int n = comm.size();
    for (std::size_t count : {1u, 400'000u}) {
      Numbers a(count, 1);
      std::int64_t expected = 1;
      std::vector<Work> works;
      const std::string first = backend_under_test(), second = backends_under_test().back();
      for (const std::string& backend : {first, second, second, first, first, second}) {
        works.push_back(comm.all_reduce(a.buffer(), sum, {.backend = backend, .async = true}));
        expected *= n;
      }
      for (Work& work : works) work.wait();
      a.expect(expected);
    }
    comm.barrier();
  });
}

// Reading waits with CUDA's locks held, but staging the message that rank 0 waits for first needs them.
TEST_P(Cuda, the_host_reads_a_result_while_a_message_of_another_library_is_on_its_way) {
  if (backends_under_test().size() < 2) GTEST_SKIP() << "needs a second backend";
  with_ranks(GetParam(), [](Comm& comm) {
    const std::string other = backends_under_test().back();
    Numbers a(1'000, 1), message(700'000, comm.rank());
    for (int turn = 0; turn < 3; ++turn) {
      std::vector<Work> works;
      if (comm.rank() != 0) works.push_back(comm.send(message.buffer(), 0, {.backend = other, .async = true}));
      for (int from = 1; comm.rank() == 0 && from < comm.size(); ++from) {
        comm.recv(message.buffer(), from, {.backend = other}).wait_host();
      }
      comm.all_reduce(a.buffer(), max);
      a.expect(1);
      for (Work& work : works) work.wait();
    }
    comm.barrier();
  });
}

TEST_P(Cuda, many_launches_that_nobody_waits_for_are_all_carried_out) {
  with_ranks(GetParam(), [](Comm& comm) {
    Numbers a(100, 0), one(100, 1);
    for (int i = 0; i < 60; ++i) comm.all_reduce(one.buffer(), a.buffer(), sum, {.async = true});
    comm.all_reduce(a.buffer(), max);
    a.expect(comm.size());
    comm.barrier();
  });
}

TEST_P(Cuda, a_batch_is_waited_for_as_one) {
  with_ranks(GetParam(), [](Comm& comm) {
    const int n = comm.size(), me = comm.rank();
    for (std::size_t count : {1u, 300'000u}) {
      Numbers out(count, me), in(count, -1);
      Work work =
          comm.batch({outgoing(out.buffer(), (me + 1) % n), incoming(in.buffer(), (me + n - 1) % n)}, {.async = true});
      work.wait();
      in.expect((me + n - 1) % n);
    }
    comm.barrier();
  });
}

INSTANTIATE_TEST_SUITE_P(ranks, Cuda, testing::Values(1, 2, 3, 4, 8),
                         [](const auto& of) { return "of_" + std::to_string(of.param); });

class CudaErrors : public testing::Test {
 protected:
  void SetUp() override {
    if (!on_device()) GTEST_SKIP() << "only with MEDLEY_TEST_MEMORY=cuda";
  }
};

TEST_F(CudaErrors, a_deadline_ends_what_waits_on_the_device_and_names_who_is_missing) {
  with_ranks(2, [](Comm& comm) {
    Comm victim = comm.dup();
    if (comm.rank() == 0) {
      Numbers a(1000, 1);
      Work work = victim.all_reduce(a.buffer(), sum, {.async = true});
      const auto error = error_of([&] { work.wait_host(100ms); });
      ASSERT_TRUE(error);
      EXPECT_EQ(error->kind(), ErrorKind::timeout) << error->what();
      EXPECT_EQ(error->context().ranks, std::vector<int>{1}) << error->what();
      a.values();  // the device is free again: a stuck kernel would block this
    }
    comm.barrier();
  });
}

TEST_F(CudaErrors, a_deadline_that_nobody_waits_for_ends_it_too) {
  with_ranks(2, [](Comm& comm) {
    Comm victim = comm.dup();
    if (comm.rank() == 0) {
      Numbers a(1000, 1);
      Work work = victim.all_reduce(a.buffer(), sum, {.async = true, .deadline = 200ms});
      while (!work.complete()) std::this_thread::yield();  // no thread calls Medley
      ASSERT_NE(work.error(), nullptr);
      EXPECT_EQ(work.error()->kind(), ErrorKind::timeout) << work.error()->what();
      a.values();
    }
    comm.barrier();
  });
}

TEST_F(CudaErrors, an_abort_reaches_every_rank) {
  with_ranks(3, [](Comm& comm) {
    Comm victim = comm.dup();
    Numbers a(1000, 1);
    if (comm.rank() == 0) {
      victim.abort();
    } else {
      // The notice may arrive before the call, which then throws itself.
      const auto error = error_of([&] { victim.all_reduce(a.buffer(), sum, {.async = true}).wait_host(20s); });
      ASSERT_TRUE(error);
      EXPECT_EQ(error->kind(), ErrorKind::aborted) << error->what();
      EXPECT_EQ(error->context().ranks, std::vector<int>{0}) << error->what();
    }
    EXPECT_THROW(victim.all_reduce(a.buffer(), sum), Error);
    comm.barrier();
  });
}

TEST_F(CudaErrors, nccl_refuses_any_source_and_tells_of_wrong_tags_and_sizes) {
  if (!over_nccl()) GTEST_SKIP() << "of nccl alone";
  with_ranks(2, [](Comm& comm) {
    Comm tags = comm.dup(), sizes = comm.dup();
    Numbers a(100, comm.rank()), b(100, -1);
    const auto any = error_of([&] { comm.recv(b.buffer(), any_source); });
    ASSERT_TRUE(any);
    EXPECT_EQ(any->kind(), ErrorKind::invalid);
    if (comm.rank() == 0) {
      tags.send(a.buffer(), 1, {.tag = 1}).wait_host();
    } else {
      const auto error = error_of([&] { tags.recv(b.buffer(), 0, {.tag = 2}).wait_host(); });
      ASSERT_TRUE(error);
      EXPECT_EQ(error->kind(), ErrorKind::mismatch) << error->what();
      EXPECT_NE(std::string(error->what()).find("tag 1"), std::string::npos) << error->what();
    }
    if (comm.rank() == 0) {
      Numbers few(10, 1);
      Work work = sizes.send(few.buffer(), 1, {.async = true});
      comm.barrier({.backend = "shm"});
      sizes.abort();
    } else {
      const auto error = error_of([&] { sizes.recv(b.buffer(), 0).wait_host(); });
      ASSERT_TRUE(error);
      EXPECT_EQ(error->kind(), ErrorKind::mismatch) << error->what();
      comm.barrier({.backend = "shm"});
    }
    comm.barrier();
  });
}

TEST_F(CudaErrors, check_mode_tells_of_comms_that_ranks_issue_in_different_orders) {
  if (!over_nccl()) GTEST_SKIP() << "of nccl alone";
  setenv("MEDLEY_CHECK", "1", 1);
  with_ranks(2, [](Comm& comm) {
    Comm first = comm.dup(), second = comm.dup(), apart = comm.split(comm.rank());
    Numbers a(100, 1), b(100, 1);
    first.all_reduce(a.buffer(), sum);
    if (comm.rank() == 0) apart.all_reduce(b.buffer(), sum);  // by one rank only: no other rank's order
    second.all_reduce(b.buffer(), sum).wait_host();
    a.expect(2);
    std::vector<Comm> order{first, second};
    if (comm.rank() == 1) std::swap(order[0], order[1]);
    std::vector<Work> works;
    const auto error = error_of([&] {
      for (Comm& one : order) works.push_back(one.all_reduce(a.buffer(), max, {.async = true}));
      for (Work& work : works) work.wait_host();
    });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->kind(), ErrorKind::mismatch) << error->what();
    EXPECT_NE(std::string(error->what()).find("in different orders"), std::string::npos) << error->what();
    comm.barrier();
  });
  unsetenv("MEDLEY_CHECK");
}

TEST_F(CudaErrors, memory_of_another_device_and_algorithms_it_does_not_have_are_refused) {
  with_ranks(2, [](Comm& comm) {
    Numbers a(10, 1);
    Buffer elsewhere = a.buffer();
    elsewhere.device = 7;
    const auto error = error_of([&] { comm.all_reduce(elsewhere, sum); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->kind(), ErrorKind::invalid);
    EXPECT_NE(std::string(error->what()).find("device 7"), std::string::npos) << error->what();
    EXPECT_THROW(comm.all_reduce(a.buffer(), sum, {.algorithm = "quick"}), Error);
    if (over_nccl()) {
      EXPECT_THROW(comm.all_reduce(a.buffer(), sum, {.algorithm = "ring"}), Error);
      std::vector<std::int64_t> host(3, 1);
      EXPECT_THROW(comm.all_reduce(host, sum, {.backend = "nccl"}), Error);
    }
    comm.all_reduce(a.buffer(), sum);
    a.expect(2);
    comm.barrier();
  });
}

}  // namespace
}  // namespace medley::conformance
