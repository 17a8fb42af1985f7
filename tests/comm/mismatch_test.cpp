// Ranks that call different operations: an error of kind mismatch on the ranks that can detect it, an error on all, and
// never wrong data accepted as right.
#include <optional>

#include "comm/refusal.hpp"
#include "harness/ranks.hpp"

namespace medley::test {
namespace {

using namespace std::chrono_literals;

struct Ending {
  bool failed_at_once = false;  ///< in the mismatched call, not a later one
  std::optional<Error> error;
};

/// Every rank runs `call`; a rank that notices nothing continues with barriers, as a program would.
std::vector<Ending> endings(int size, const std::function<void(Comm&)>& call) {
  std::vector<Ending> all(static_cast<std::size_t>(size));
  run_threads(
      size,
      [&](Context& context) {
        Comm world = context.world();
        Ending& mine = all[static_cast<std::size_t>(context.rank())];
        try {
          try {
            call(world);
          } catch (...) {
            mine.failed_at_once = true;
            throw;
          }
          for (int i = 0; i < 6; ++i) world.barrier();
        } catch (const Error& error) {
          mine.error = error;
        }
      },
      [](ContextOptions& options) { options.deadline = 20s; });
  return all;
}

/// `symmetric`: every rank gets data from every other, so every rank must fail in it.
void expect_mismatch(int size, bool symmetric, std::initializer_list<std::string> fragments,
                     const std::function<void(Comm&)>& call) {
  const std::vector<Ending> all = endings(size, call);
  bool someone_knows = false;
  for (int r = 0; r < size; ++r) {
    const Ending& ending = all[static_cast<std::size_t>(r)];
    ASSERT_TRUE(ending.error) << "rank " << r << " noticed nothing";
    const std::string text = ending.error->what();
    const bool knows = ending.error->kind() == ErrorKind::mismatch;
    EXPECT_TRUE(knows || ending.error->kind() == ErrorKind::aborted) << text;
    EXPECT_TRUE(ending.failed_at_once || !symmetric) << "rank " << r << " took wrong data for right";
    EXPECT_NE(text.find("comm world"), std::string::npos) << text;
    if (knows) {
      for (const std::string& fragment : fragments) {
        EXPECT_NE(text.find(fragment), std::string::npos) << "\"" << fragment << "\" is missing in: " << text;
      }
      EXPECT_FALSE(ending.error->context().ranks.empty()) << text;
    }
    someone_knows = someone_knows || knows;
  }
  EXPECT_TRUE(someone_knows) << "every rank blames another";
}

TEST(Mismatch, counts_of_an_all_reduce) {
  // In the flag's line, staged, read directly, and across those; sizes 8192 apart agree in the bits that a flag
  // carries.
  const std::pair<std::int64_t, std::int64_t> counts[] = {
      {1, 2}, {1, 0}, {500, 501}, {1, 8193}, {3, 100'003}, {900, 1'000'000}, {50'000, 58'192}, {300'000, 300'001}};
  for (const auto& [first, other] : counts) {
    expect_mismatch(3, true, {"all_reduce", "count"}, [&, a = first, b = other](Comm& comm) {
      std::vector<float> values(static_cast<std::size_t>(comm.rank() == 1 ? b : a));
      comm.all_reduce(values, sum);
    });
  }
}

TEST(Mismatch, types_and_reductions_of_an_all_reduce) {
  for (std::size_t count : {1u, 3'000u, 100'000u}) {
    expect_mismatch(2, true, {"all_reduce", "f32", "i32"}, [&](Comm& comm) {
      std::vector<float> values(count);
      const DType dtype = comm.rank() == 0 ? DType::f32 : DType::i32;
      comm.all_reduce(Buffer(values.data(), static_cast<std::int64_t>(count), dtype), sum);
    });
    expect_mismatch(2, true, {"all_reduce", "sum", "max"}, [&](Comm& comm) {
      std::vector<float> values(count);
      comm.all_reduce(values, comm.rank() == 0 ? sum : max);
    });
  }
}

TEST(Mismatch, operations) {
  expect_mismatch(3, true, {"barrier", "all_reduce"}, [](Comm& comm) {
    std::vector<float> values(10);
    if (comm.rank() == 2) comm.barrier();
    if (comm.rank() != 2) comm.all_reduce(values, sum);
  });
  expect_mismatch(2, true, {"all_gather", "all_to_all"}, [](Comm& comm) {
    std::vector<float> values(100'000), more(200'000);
    if (comm.rank() == 0) comm.all_gather(values, more);
    if (comm.rank() == 1) comm.all_to_all(values, Buffer(more.data(), 100'000, DType::f32));
  });
}

TEST(Mismatch, roots) {
  for (std::size_t count : {1u, 3'000u, 100'000u}) {
    // Each waits for the other.
    expect_mismatch(2, true, {"broadcast", "root 0", "root 1"}, [&](Comm& comm) {
      std::vector<float> values(count);
      comm.broadcast(values, 1 - comm.rank());
    });
    // Both send: it shows in one of the next operations.
    expect_mismatch(2, false, {"root 0", "root 1"}, [&](Comm& comm) {
      std::vector<float> values(count);
      comm.broadcast(values, comm.rank());
    });
    expect_mismatch(3, false, {"root"}, [&](Comm& comm) {
      std::vector<float> values(count);
      comm.reduce(values, sum, comm.rank() == 1 ? 1 : 0);
    });
  }
}

TEST(Mismatch, counts_of_copies) {
  for (std::size_t count : {2u, 3'000u, 100'000u}) {
    const auto differs = [&](Comm& comm) { return count + (comm.rank() == 1 ? 1 : 0); };
    expect_mismatch(2, true, {"all_gather"}, [&](Comm& comm) {
      std::vector<float> in(differs(comm)), out(2 * in.size());
      comm.all_gather(in, out);
    });
    expect_mismatch(2, true, {"all_to_all"}, [&](Comm& comm) {
      std::vector<float> in(2 * differs(comm)), out(in.size());
      comm.all_to_all(in, out);
    });
    expect_mismatch(2, true, {"reduce_scatter"}, [&](Comm& comm) {
      std::vector<float> in(2 * differs(comm)), out(differs(comm));
      comm.reduce_scatter(in, out, sum);
    });
    expect_mismatch(2, false, {"broadcast"}, [&](Comm& comm) {
      std::vector<float> values(differs(comm));
      comm.broadcast(values, 0);
    });
  }
}

TEST(Mismatch, counts_of_v_forms) {
  for (std::int64_t count : {2, 3'000, 100'000}) {
    expect_mismatch(2, true, {"all_to_allv", "bytes"}, [&](Comm& comm) {
      // Each expects one element more than the other sends.
      const std::int64_t me = comm.rank(), gives[] = {count, count}, takes[] = {count + (me == 1), count + (me == 0)};
      std::vector<float> in(static_cast<std::size_t>(2 * count)), out(static_cast<std::size_t>(2 * count + 1));
      comm.all_to_allv(in, {gives}, out, {takes});
    });
    expect_mismatch(2, false, {"gatherv", "bytes"}, [&](Comm& comm) {
      const std::int64_t takes[] = {count, count + 1};
      std::vector<float> in(static_cast<std::size_t>(count)), out(static_cast<std::size_t>(2 * count + 1));
      comm.gatherv(in, out, {takes}, 0);
    });
    expect_mismatch(2, false, {"scatterv", "bytes"}, [&](Comm& comm) {
      const std::int64_t gives[] = {count, count + 1};
      std::vector<float> in(static_cast<std::size_t>(2 * count + 1)), out(static_cast<std::size_t>(count));
      comm.scatterv(in, {gives}, out, 0);
    });
    expect_mismatch(2, true, {"reduce_scatterv", "bytes"}, [&](Comm& comm) {
      const std::int64_t more = comm.rank(), parts[] = {count + more, count + 1 - more};
      std::vector<float> in(static_cast<std::size_t>(2 * count + 1)),
          out(static_cast<std::size_t>(parts[static_cast<std::size_t>(comm.rank())]));
      comm.reduce_scatterv(in, {parts}, out, sum);
    });
  }
}

TEST(Mismatch, a_message_longer_than_its_receive_leaves_the_comm_usable) {
  for (const int async : {0, 1}) {
    run_threads(2, [&](Context& context) {
      Comm world = context.world();
      for (std::size_t sent : {2u, 3'000u, 1'000'000u}) {
        std::vector<float> out(sent, 1.0f), in(sent - 1, 5.0f);
        if (context.rank() == 0) {
          world.send(out, 1, {.async = async == 1, .tag = 6}).wait();
        } else {
          expect_error(ErrorKind::mismatch,
                       {"recv #", "comm world", "rank 0 sent", std::to_string(sent * 4), "tag 6",
                        std::to_string((sent - 1) * 4)},
                       [&] { world.recv(in, 0, {.async = async == 1, .tag = 6}).wait(); });
          EXPECT_EQ(in, std::vector<float>(sent - 1, 5.0f));
        }
        world.barrier();
      }
    });
  }
}

}  // namespace
}  // namespace medley::test
