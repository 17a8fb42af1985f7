// Wrong arguments: each is refused before anything is sent, with a sentence that names op, comm and value, and leaves
// the comm usable.
#include <array>
#include <limits>

#include "comm/refusal.hpp"
#include "harness/ranks.hpp"

namespace medley::test {
namespace {

constexpr auto nothing = static_cast<DType>(10);

/// Runs the body on both of two ranks and shows that the comm still works.
void on_two_ranks(const std::function<void(Comm&)>& body) {
  run_threads(2, [&](Context& context) {
    Comm world = context.world();
    body(world);
    std::vector<float> one(3, 1.0f);
    world.all_reduce(one, sum);
    EXPECT_EQ(one.back(), 2.0f);
  });
}

TEST(BadInput, ranks_outside_the_comm) {
  on_two_ranks([](Comm& world) {
    std::vector<float> x(4), y(8);
    const std::int64_t counts[] = {4, 4};
    expect_refused({"send on comm world", "destination 2", "0 to 1"}, [&] { world.send(x, 2); });
    expect_refused({"send on comm world", "destination -1"}, [&] { world.send(x, any_source); });
    expect_refused({"recv on comm world", "source 5"}, [&] { world.recv(x, 5); });
    expect_refused({"recv on comm world", "source -2"}, [&] { world.recv(x, -2); });
    expect_refused({"recv on comm world", "source 9"}, [&] { world.sendrecv(x, 1, y, 9); });
    expect_refused({"send on comm world", "destination 7"}, [&] { world.batch({incoming(x, 0), outgoing(y, 7)}); });
    expect_refused({"broadcast on comm world", "root 2"}, [&] { world.broadcast(x, 2); });
    expect_refused({"reduce on comm world", "root -1"}, [&] { world.reduce(x, sum, -1); });
    expect_refused({"gather on comm world", "root 3"}, [&] { world.gather(x, y, 3); });
    expect_refused({"scatter on comm world", "root 4"}, [&] { world.scatter(y, x, 4); });
    expect_refused({"gatherv on comm world", "root 5"}, [&] { world.gatherv(x, y, {counts}, 5); });
    expect_refused({"scatterv on comm world", "root 6"}, [&] { world.scatterv(y, {counts}, x, 6); });
  });
}

TEST(BadInput, counts_and_pointers) {
  on_two_ranks([](Comm& world) {
    std::vector<float> x(4), y(8);
    const Buffer negative(x.data(), -3, DType::f32), null(nullptr, 4, DType::f32);
    const Buffer impossible(x.data(), std::numeric_limits<std::int64_t>::max() / 8, DType::f32);
    expect_refused({"all_reduce on comm world", "negative count, -3"}, [&] { world.all_reduce(negative, sum); });
    expect_refused({"send on comm world", "negative count, -3"}, [&] { world.send(negative, 1); });
    expect_refused({"recv on comm world", "negative count, -3"}, [&] { world.recv(negative, 1); });
    expect_refused({"broadcast on comm world", "null", "4 elements"}, [&] { world.broadcast(null, 0); });
    expect_refused({"all_gather on comm world", "input", "null"}, [&] { world.all_gather(null, y); });
    expect_refused({"all_gather on comm world", "output", "null"},
                   [&] { world.all_gather(ConstBuffer(x.data(), 2, DType::f32), null); });
    expect_refused({"all_gather on comm world", "impossible"}, [&] { world.all_gather(impossible, y); });
    expect_refused({"all_gather on comm world", "output", "4 elements", "needs 8"}, [&] { world.all_gather(x, x); });
    expect_refused({"reduce_scatter on comm world", "input", "8 elements", "needs 16"},
                   [&] { world.reduce_scatter(y, y, sum); });
    expect_refused({"all_reduce on comm world", "output", "8 elements", "needs 4"},
                   [&] { world.all_reduce(x, y, sum); });
    expect_refused({"all_to_all on comm world", "output", "8 elements", "needs 4"}, [&] { world.all_to_all(x, y); });
    std::vector<float> odd(3), into(3);
    expect_refused({"all_to_all on comm world", "3 elements", "2 ranks", "all_to_allv"},
                   [&] { world.all_to_all(odd, into); });
    if (world.rank() == 0) {  // only the root passes these buffers
      expect_refused({"gather on comm world", "output", "5 elements", "needs 8"},
                     [&] { world.gather(x, Buffer(y.data(), 5, DType::f32), 0); });
      expect_refused({"scatter on comm world", "input", "8 elements", "needs 16"},
                     [&] { world.scatter(y, Buffer(y.data(), 8, DType::f32), 0); });
      expect_refused({"reduce on comm world", "output", "8 elements", "needs 4"}, [&] { world.reduce(x, y, sum, 0); });
    }
  });
}

TEST(BadInput, types_reductions_tags_and_memory) {
  on_two_ranks([](Comm& world) {
    std::vector<float> x(4), y(4);
    std::vector<std::int32_t> i(4);
    expect_refused({"broadcast on comm world", "unknown element type 10"},
                   [&] { world.broadcast(Buffer(x.data(), 4, nothing), 0); });
    expect_refused({"send on comm world", "unknown element type 10"},
                   [&] { world.send(ConstBuffer(x.data(), 4, nothing), 1); });
    expect_refused({"all_reduce on comm world", "unknown reduction 8"},
                   [&] { world.all_reduce(x, static_cast<ReduceOp>(8)); });
    expect_refused({"all_reduce on comm world", "input is f32", "output is i32"}, [&] { world.all_reduce(x, i, sum); });
    expect_refused({"all_to_all on comm world", "host", "cuda"},
                   [&] { world.all_to_all(x, Buffer(y.data(), 4, DType::f32, Memory::cuda)); });
    expect_refused({"send on comm world", "tag -4"}, [&] { world.send(x, 1, {.tag = -4}); });
    for (int t = 0; t < dtype_count; ++t) {
      for (int r = 0; r < reduce_op_count; ++r) {
        const auto dtype = static_cast<DType>(t);
        const auto reduce = static_cast<ReduceOp>(r);
        if (reducible(dtype, reduce)) continue;
        std::array<std::int64_t, 4> memory{}, other{};
        const Buffer in(memory.data(), 2, dtype), out(other.data(), 1, dtype);
        const std::int64_t counts[] = {1, 1};
        const std::string what(name(reduce)), type(name(dtype));
        expect_refused({"all_reduce on comm world", what, type}, [&] { world.all_reduce(in, reduce); });
        expect_refused({"reduce on comm world", what, type}, [&] { world.reduce(in, reduce, 0); });
        expect_refused({"reduce_scatter on comm world", what, type}, [&] { world.reduce_scatter(in, out, reduce); });
        expect_refused({"reduce_scatterv on comm world", what, type},
                       [&] { world.reduce_scatterv(in, {counts}, out, reduce); });
      }
    }
    expect_error(ErrorKind::unavailable, {"broadcast on comm world", "cuda memory", "shm"},
                 [&] { world.broadcast(Buffer(x.data(), 4, DType::f32, Memory::cuda), 0); });
    expect_error(ErrorKind::unavailable, {"broadcast on comm world", "\"smoke\"", "shm"},
                 [&] { world.broadcast(x, 0, {.backend = "smoke"}); });
  });
}

TEST(BadInput, input_and_output_that_overlap) {
  on_two_ranks([](Comm& world) {
    std::vector<float> x(64);
    const auto at = [&](std::int64_t begin, std::int64_t count) { return Buffer(x.data() + begin, count, DType::f32); };
    const std::int64_t counts[] = {4, 4};
    const int me = world.rank();
    const std::string overlap = "overlap";
    expect_refused({"all_reduce on comm world", overlap}, [&] { world.all_reduce(at(0, 8), at(4, 8), sum); });
    expect_refused({"reduce on comm world", overlap}, [&] { world.reduce(at(4, 8), at(0, 8), sum, me); });
    expect_refused({"all_to_all on comm world", overlap}, [&] { world.all_to_all(at(0, 8), at(2, 8)); });
    expect_refused({"all_gather on comm world", overlap}, [&] { world.all_gather(at(4 * (1 - me), 4), at(0, 8)); });
    expect_refused({"reduce_scatter on comm world", overlap},
                   [&] { world.reduce_scatter(at(0, 8), at(4 * (1 - me), 4), sum); });
    expect_refused({"gather on comm world", overlap}, [&] { world.gather(at(1, 4), at(0, 8), me); });
    expect_refused({"scatter on comm world", overlap}, [&] { world.scatter(at(0, 8), at(7, 4), me); });
    expect_refused({"gatherv on comm world", overlap}, [&] { world.gatherv(at(2, 4), at(0, 8), {counts}, me); });
    expect_refused({"scatterv on comm world", overlap}, [&] { world.scatterv(at(0, 8), {counts}, at(2, 4), me); });
    expect_refused({"all_gatherv on comm world", overlap}, [&] { world.all_gatherv(at(2, 4), at(0, 8), {counts}); });
    expect_refused({"reduce_scatterv on comm world", overlap},
                   [&] { world.reduce_scatterv(at(0, 8), {counts}, at(2, 4), sum); });
    expect_refused({"all_to_allv on comm world", overlap},
                   [&] { world.all_to_allv(at(0, 8), {counts}, at(2, 8), {counts}); });
  });
}

TEST(BadInput, lists_of_parts) {
  on_two_ranks([](Comm& world) {
    std::vector<float> in(4), out(8), whole(8);
    const std::int64_t good[] = {4, 4}, three[] = {4, 4, 4}, negative[] = {4, -1}, too_long[] = {4, 5},
                       other[] = {2, 2};
    const std::int64_t outside[] = {0, 5}, before[] = {-1, 4}, one[] = {0}, same[] = {0, 0}, far[] = {0, INT64_MAX - 1};
    const std::int64_t huge[] = {4, INT64_MAX};
    expect_refused({"all_gatherv on comm world", "3 counts", "2 ranks"}, [&] { world.all_gatherv(in, out, {three}); });
    expect_refused({"all_gatherv on comm world", "1 offsets", "2 ranks"}, [&] {
      world.all_gatherv(in, out, {good, one});
    });
    expect_refused({"all_gatherv on comm world", "negative count, -1", "rank 1"},
                   [&] { world.all_gatherv(in, out, {negative}); });
    expect_refused({"all_gatherv on comm world", "rank 1", "4 to 9", "of 8"},
                   [&] { world.all_gatherv(in, out, {too_long}); });
    expect_refused({"all_gatherv on comm world", "rank 1", "5 to 9", "of 8"}, [&] {
      world.all_gatherv(in, out, {good, outside});
    });
    expect_refused({"all_gatherv on comm world", "rank 0", "-1"}, [&] { world.all_gatherv(in, out, {good, before}); });
    expect_refused({"all_gatherv on comm world", "rank 1", "of 8"}, [&] { world.all_gatherv(in, out, {good, far}); });
    expect_refused({"all_gatherv on comm world", "rank 1", "of 8"}, [&] { world.all_gatherv(in, out, {huge}); });
    expect_refused({"all_gatherv on comm world", "ranks 0 and 1", "overlap"}, [&] {
      world.all_gatherv(in, out, {good, same});
    });
    expect_refused({"all_to_allv on comm world", "ranks 0 and 1", "overlap"}, [&] {
      world.all_to_allv(whole, {good}, out, {good, same});
    });
    expect_refused({"all_gatherv on comm world", "input", "4 elements", "needs 2"},
                   [&] { world.all_gatherv(in, out, {other}); });
    expect_refused({"reduce_scatterv on comm world", "output", "4 elements", "needs 2"},
                   [&] { world.reduce_scatterv(whole, {other}, in, sum); });
    expect_refused({"all_to_allv on comm world", "2 elements", "needs 4"},
                   [&] { world.all_to_allv(whole, {good}, out, {other}); });
    expect_refused({"gatherv on comm world", "3 counts"}, [&] { world.gatherv(in, out, {three}, world.rank()); });
    expect_refused({"scatterv on comm world", "3 counts"}, [&] { world.scatterv(whole, {three}, in, world.rank()); });
  });
}

TEST(BadInput, subsets) {
  on_two_ranks([](Comm& world) {
    expect_refused({"subset of comm world", "rank 1 is listed twice"}, [&] { world.subset({0, 1, 1}); });
    expect_refused({"subset of comm world", "2 is not one of its ranks 0 to 1"}, [&] { world.subset({0, 2}); });
    expect_refused({"subset of comm world", "-1 is not"}, [&] { world.subset({-1}); });
    expect_refused({"subset of comm world", "no ranks"}, [&] { world.subset({}); });
  });
}

TEST(BadInput, a_comm_that_stands_for_nothing) {
  Comm empty;
  std::vector<float> x(2);
  EXPECT_FALSE(empty);
  EXPECT_EQ(empty.size(), 0);
  expect_refused({"Comm is empty"}, [&] { empty.barrier(); });
  expect_refused({"Comm is empty"}, [&] { empty.all_reduce(x, sum); });
  expect_refused({"Comm is empty"}, [&] { empty.send(x, 0); });
  expect_refused({"Comm is empty"}, [&] { empty.batch({incoming(x, 0)}); });
  expect_refused({"Comm is empty"}, [&] { empty.dup(); });
  expect_refused({"Comm is empty"}, [&] { empty.subset({0}); });
  expect_refused({"Comm is empty"}, [&] { empty.abort(); });
}

TEST(BadInput, a_comm_used_after_its_context) {
  Comm world;
  {
    Context context(ContextOptions{.rank = 0, .size = 1});
    world = context.world();
    world.barrier();
  }
  std::vector<float> x(2);
  EXPECT_EQ(world.size(), 1);
  expect_refused({"barrier", "comm world", "context no longer exists"}, [&] { world.barrier(); });
  expect_refused({"all_reduce", "comm world", "context no longer exists"}, [&] { world.all_reduce(x, sum); });
  expect_refused({"send", "comm world", "context no longer exists"}, [&] { world.send(x, 0); });
  expect_refused({"send", "comm world", "context no longer exists"}, [&] { world.sendrecv(x, 0, x, 0); });
  expect_refused({"comm world", "context no longer exists"}, [&] { world.dup(); });
  world.abort();
}

TEST(BadInput, a_context_in_an_impossible_place) {
  const auto make = [](ContextOptions options) { return [options] { Context context(options); }; };
  expect_refused({"rank 2 of 2", "0 <= rank < size"}, make({.rank = 2, .size = 2, .store = make_local_store()}));
  expect_refused({"rank -1 of 2"}, make({.rank = -1, .size = 2, .store = make_local_store()}));
  expect_refused({"rank 0 of -3"}, make({.rank = 0, .size = -3, .store = make_local_store()}));
  expect_refused({"rank 0 of 2", "store"}, make({.rank = 0, .size = 2}));
  expect_refused({"ContextOptions::deadline", "-1000000000 ns", "above 0"},
                 make({.rank = 0, .size = 1, .deadline = std::chrono::seconds(-1)}));
  expect_error(ErrorKind::unavailable, {"backend smoke", "shm"},
               make({.backends = {"shm", "smoke"}, .rank = 0, .size = 1}));
}

TEST(BadInput, work_left_over_when_its_context_ends) {
  Work pending;
  std::vector<float> x(2);
  {
    Context context(ContextOptions{.rank = 0, .size = 1});
    pending = context.world().recv(x, 0, {.async = true});
    EXPECT_FALSE(pending.test());
    EXPECT_EQ(pending.error(), nullptr);
  }
  expect_error(ErrorKind::aborted, {"recv", "comm world", "context was destroyed"}, [&] { pending.wait(); });
  ASSERT_NE(pending.error(), nullptr);
}

}  // namespace
}  // namespace medley::test
