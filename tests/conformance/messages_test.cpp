// Sends and receives: matching, order, tags, batches, self messages, receives from any source.
#include <algorithm>
#include <numeric>

#include "conformance/run_case.hpp"

namespace medley::conformance {
namespace {

constexpr std::int64_t sizes[] = {0, 1, 3, 17, 1024, 5'000, (1 << 18) + 1};  // of f32: eager, rendezvous and streamed

/// Message number `id` from `from`: memory with its contents, or empty memory for it.
struct Letter {
  Letter(std::int64_t n, DType type) : count(n), dtype(type), memory(n, size_of(type)) {}
  static Letter written(std::uint64_t id, int from, std::int64_t count, DType dtype = DType::f32) {
    Letter letter(count, dtype);
    write_input(letter.memory.data(), dtype, id, from, 0, count);
    return letter;
  }
  Buffer buffer() { return memory.buffer(memory.data(), count, dtype); }
  void expect(std::uint64_t id, int from, std::int64_t sent) {
    memory.fetch();
    Letter expected(count, dtype);
    write_input(expected.memory.data(), dtype, id, from, 0, sent);
    EXPECT_EQ(memory.difference(expected.memory, size_of(dtype)), "") << "message " << id << " from rank " << from;
  }
  void expect(std::uint64_t id, int from) { expect(id, from, count); }

  std::int64_t count;
  DType dtype;
  Guarded memory;
};

class Messages : public testing::TestWithParam<int> {};

TEST_P(Messages, travel_between_every_pair_in_every_size_and_type) {
  with_ranks(GetParam(), [](Comm& comm) {
    std::uint64_t id = 0;
    for (int t = 0; t < dtype_count; ++t) {
      const auto dtype = static_cast<DType>(t);
      for (std::int64_t count : sizes) {
        if (count > 5'000 && dtype != DType::f32 && dtype != DType::i8) continue;
        for (int from = 0; from < comm.size(); ++from) {
          const int to = (from + 1 + static_cast<int>(id % 3)) % comm.size();
          ++id;
          if (to == from) continue;
          Letter out = Letter::written(id, from, count, dtype), in(count, dtype);
          if (comm.rank() == from) comm.send(out.buffer(), to);
          if (comm.rank() == to) {
            EXPECT_EQ(comm.recv(in.buffer(), from).source(), from);
            in.expect(id, from);
          }
          if (comm.rank() == from) out.expect(id, from);  // unchanged
        }
      }
    }
    comm.barrier();
  });
}

TEST_P(Messages, are_received_by_receives_posted_before_any_send_on_every_pair) {
  with_ranks(GetParam(), [](Comm& comm) {
    for (std::int64_t count : sizes) {
      const int n = comm.size();
      std::vector<Letter> in, out;
      std::vector<Work> works;
      for (int r = 0; r < n; ++r) {
        in.emplace_back(count, DType::f32);
        out.push_back(Letter::written(static_cast<std::uint64_t>(r) + 1, comm.rank(), count));
      }
      for (int r = 0; r < n; ++r)
        works.push_back(comm.recv(in[static_cast<std::size_t>(r)].buffer(), r, {.async = true}));
      for (int r = 0; r < n; ++r)
        works.push_back(comm.send(out[static_cast<std::size_t>(r)].buffer(), r, {.async = true}));
      std::reverse(works.begin(), works.end());
      for (Work& work : works) work.wait();
      for (int r = 0; r < n; ++r)
        in[static_cast<std::size_t>(r)].expect(static_cast<std::uint64_t>(comm.rank()) + 1, r);
    }
    comm.barrier();
  });
}

TEST_P(Messages, of_one_tag_keep_their_order_whatever_their_sizes) {
  with_ranks(GetParam(), [](Comm& comm) {
    const int to = (comm.rank() + 1) % comm.size(), from = (comm.rank() + comm.size() - 1) % comm.size();
    constexpr std::uint64_t messages = 60;
    const auto count = [](std::uint64_t id) {
      return std::int64_t{1} << (id * 5 % 17);
    };  // small and large in alternation
    std::vector<Letter> in, out;
    std::vector<Work> works;
    for (std::uint64_t id = 0; id < messages; ++id) {
      in.emplace_back(count(id), DType::f32);
      out.push_back(Letter::written(id, comm.rank(), count(id)));
    }
    for (auto& letter : out) works.push_back(comm.send(letter.buffer(), to, {.async = true}));
    for (auto& letter : in) works.push_back(comm.recv(letter.buffer(), from, {.async = true}));
    for (Work& work : works) work.wait();
    for (std::uint64_t id = 0; id < messages; ++id) in[id].expect(id, from);
    comm.barrier();
  });
}

TEST_P(Messages, are_matched_by_tag_out_of_the_order_they_were_sent_in) {
  if (over_nccl()) GTEST_SKIP() << "NCCL carries no tags; the wrong order is an error (cuda_test.cpp)";
  with_ranks(GetParam(), [](Comm& comm) {
    const int to = (comm.rank() + 1) % comm.size(), from = (comm.rank() + comm.size() - 1) % comm.size();
    for (std::int64_t count : sizes) {
      constexpr int tags = 5;
      std::vector<Letter> in, out;
      std::vector<Work> sends;
      for (int tag = 0; tag < tags; ++tag) {
        in.emplace_back(count, DType::f32);
        out.push_back(Letter::written(static_cast<std::uint64_t>(tag), comm.rank(), count));
      }
      for (int tag = 0; tag < tags; ++tag) {
        sends.push_back(comm.send(out[static_cast<std::size_t>(tag)].buffer(), to, {.async = true, .tag = tag * 1000}));
      }
      for (int tag = tags - 1; tag >= 0; --tag)
        comm.recv(in[static_cast<std::size_t>(tag)].buffer(), from, {.tag = tag * 1000});
      for (Work& work : sends) work.wait();
      for (int tag = 0; tag < tags; ++tag)
        in[static_cast<std::size_t>(tag)].expect(static_cast<std::uint64_t>(tag), from);
    }
    comm.barrier();
  });
}

TEST_P(Messages, come_from_any_source_with_the_sender_named_and_in_each_senders_order) {
  if (over_nccl()) GTEST_SKIP() << "NCCL has no receive from any source; it is refused (cuda_test.cpp)";
  with_ranks(GetParam(), [](Comm& comm) {
    constexpr int each = 8;
    int tag = 0;
    for (std::int64_t count : sizes) {
      ++tag;  // senders run ahead of the receiver
      if (comm.rank() != 0) {
        for (int i = 0; i < each; ++i) {
          Letter letter = Letter::written(static_cast<std::uint64_t>(i), comm.rank(), count);
          comm.send(letter.buffer(), 0, {.tag = tag});
        }
        continue;
      }
      std::vector<int> seen(static_cast<std::size_t>(comm.size()));
      for (int i = 0; i < each * (comm.size() - 1); ++i) {
        Letter letter(count, DType::f32);
        Work work = comm.recv(letter.buffer(), any_source, {.async = i % 2 == 1, .tag = tag});
        work.wait();
        const int from = work.source();
        ASSERT_GT(from, 0);
        ASSERT_LT(from, comm.size());
        letter.expect(static_cast<std::uint64_t>(seen[static_cast<std::size_t>(from)]++), from);
      }
      for (int r = 1; r < comm.size(); ++r) EXPECT_EQ(seen[static_cast<std::size_t>(r)], each);
    }
    comm.barrier();
  });
}

TEST_P(Messages, to_oneself_arrive) {
  with_ranks(GetParam(), [](Comm& comm) {
    for (std::int64_t count : sizes) {
      Letter out = Letter::written(1, comm.rank(), count), in(count, DType::f32), again(count, DType::f32);
      Work receive = comm.recv(in.buffer(), comm.rank(), {.async = true, .tag = 3});
      comm.send(out.buffer(), comm.rank(), {.tag = 3});
      receive.wait();
      in.expect(1, comm.rank());
      EXPECT_EQ(receive.source(), comm.rank());
      comm.sendrecv(out.buffer(), comm.rank(), again.buffer(), comm.rank());
      again.expect(1, comm.rank());
    }
    comm.barrier();
  });
}

TEST_P(Messages, fill_the_front_of_a_receive_that_has_more_room) {
  if (over_nccl()) GTEST_SKIP() << "NCCL needs equal sizes; others are an error (cuda_test.cpp)";
  with_ranks(GetParam(), [](Comm& comm) {
    const int to = (comm.rank() + 1) % comm.size(), from = (comm.rank() + comm.size() - 1) % comm.size();
    for (std::int64_t count : sizes) {
      Letter out = Letter::written(1, comm.rank(), count), in(count + 9, DType::f32);
      comm.sendrecv(out.buffer(), to, in.buffer(), from);
      in.expect(1, from, count);
    }
    comm.barrier();
  });
}

TEST_P(Messages, of_every_length_around_the_limits_of_the_protocols_arrive_in_order) {
  if (over_nccl()) GTEST_SKIP() << "NCCL needs equal sizes; others are an error (cuda_test.cpp)";
  with_ranks(GetParam(), [](Comm& comm) {
    const int to = (comm.rank() + 1) % comm.size(), from = (comm.rank() + comm.size() - 1) % comm.size();
    std::vector<std::int64_t> bytes;
    // Medley's limits over mpi (a header, a first part, slices) and over shm and ucx (a line, a frame, eager), and
    // those of MPIs.
    for (std::int64_t limit : {13, 48, 64, 3987, 4000, 4096, 7974, 8192, 16384, 65536, 65549})
      for (std::int64_t more = -1; more <= 1; ++more) bytes.push_back(limit + more);
    for (const bool posted_first : {true, false}) {
      std::vector<Letter> in, out;
      std::vector<Work> works;
      for (std::size_t i = 0; i < bytes.size(); ++i) {
        in.emplace_back(bytes[i] + static_cast<std::int64_t>(i % 3) * 5, DType::i8);  // some receives have more room
        out.push_back(Letter::written(i, comm.rank(), bytes[i], DType::i8));
      }
      const auto receive_all = [&] {
        for (Letter& letter : in) works.push_back(comm.recv(letter.buffer(), from, {.async = true}));
      };
      if (posted_first) receive_all();
      comm.barrier();
      for (Letter& letter : out) works.push_back(comm.send(letter.buffer(), to, {.async = true}));
      if (!posted_first) receive_all();
      for (Work& work : works) work.wait();
      for (std::size_t i = 0; i < bytes.size(); ++i) in[i].expect(i, from, bytes[i]);
    }
    comm.barrier();
  });
}

TEST_P(Messages, of_more_than_a_librarys_memory_holds_arrive_in_order) {
  if (over_nccl()) GTEST_SKIP() << "NCCL needs equal sizes; others are an error (cuda_test.cpp)";
  with_ranks(GetParam(), [](Comm& comm) {
    const int to = (comm.rank() + 1) % comm.size(), from = (comm.rank() + comm.size() - 1) % comm.size();
    constexpr std::int64_t bytes[] = {8, 92, 93, 24, 2000, 64};  // what UCX sends at once, and what it may keep back
    constexpr std::size_t messages = 600;
    std::vector<Letter> in, out;
    std::vector<Work> works;
    for (std::size_t i = 0; i < messages; ++i) {
      in.emplace_back(bytes[i % std::size(bytes)], DType::i8);
      out.push_back(Letter::written(i, comm.rank(), bytes[i % std::size(bytes)], DType::i8));
    }
    for (Letter& letter : out) works.push_back(comm.send(letter.buffer(), to, {.async = true}));
    for (Letter& letter : in) works.push_back(comm.recv(letter.buffer(), from, {.async = true}));
    for (Work& work : works) work.wait();
    for (std::size_t i = 0; i < messages; ++i) in[i].expect(i, from, bytes[i % std::size(bytes)]);
    comm.barrier();
  });
}

TEST_P(Messages, in_a_batch_complete_together_in_any_order_of_the_list) {
  with_ranks(GetParam(), [](Comm& comm) {
    const int n = comm.size();
    for (std::int64_t count : sizes) {
      std::vector<Letter> in, out;
      for (int r = 0; r < n; ++r) {
        in.emplace_back(count + r, DType::f32);
        out.push_back(Letter::written(static_cast<std::uint64_t>(r), comm.rank(), count + comm.rank()));
      }
      std::vector<Message> list;
      for (int r = n - 1; r >= 0; --r) {
        list.push_back(outgoing(out[static_cast<std::size_t>(r)].buffer(), r, 1));
        list.push_back(incoming(in[static_cast<std::size_t>(r)].buffer(), r, 1));
      }
      Work work = comm.batch(list, {.async = count % 2 == 1});
      work.wait();
      if (on_device()) work.wait_host();  // there wait() blocks only the stream
      EXPECT_TRUE(work.test());
      EXPECT_EQ(work.error(), nullptr);
      for (int r = 0; r < n; ++r) in[static_cast<std::size_t>(r)].expect(static_cast<std::uint64_t>(comm.rank()), r);
    }
    comm.batch(std::span<const Message>{}).wait();
    comm.barrier();
  });
}

TEST_P(Messages, pass_pending_collectives_and_are_passed_by_them) {
  with_ranks(GetParam(), [](Comm& comm) {
    // Rank 0 enters the collective only after receiving a message that the others send after they issued it.
    std::vector<float> sums(1000, 1.0f), expected(1000, static_cast<float>(comm.size()));
    std::int32_t token = 0;
    Work collective;
    if (comm.rank() != 0) collective = comm.all_reduce(sums, sum, {.async = true});
    if (comm.rank() != 0) comm.send(ConstBuffer(&token, 1, DType::i32), 0);
    for (int r = 1; r < comm.size() && comm.rank() == 0; ++r) comm.recv(Buffer(&token, 1, DType::i32), r);
    if (comm.rank() == 0) collective = comm.all_reduce(sums, sum, {.async = true});
    collective.wait();
    EXPECT_EQ(sums, expected);
    // And the other way round: an unmatched receive does not block a collective.
    std::int32_t late = -1;
    Work receive = comm.recv(Buffer(&late, 1, DType::i32), (comm.rank() + 1) % comm.size(), {.async = true, .tag = 9});
    comm.barrier();
    const std::int32_t mine = comm.rank();
    comm.send(ConstBuffer(&mine, 1, DType::i32), (comm.rank() + comm.size() - 1) % comm.size(), {.tag = 9});
    receive.wait();
    EXPECT_EQ(late, (comm.rank() + 1) % comm.size());
    comm.barrier();
  });
}

INSTANTIATE_TEST_SUITE_P(ranks, Messages, testing::Values(1, 2, 3, 4, 5, 8),
                         [](const auto& of) { return "of_" + std::to_string(of.param); });

}  // namespace
}  // namespace medley::conformance
