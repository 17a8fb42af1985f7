// What the gloo backend supports, which address it selects, and that it leaves no threads behind.
#include <cstdlib>
#include <filesystem>

#include "comm/backend_loader.hpp"
#include "harness/ranks.hpp"

namespace medley::test {
namespace {

BackendParams alone() {
  return {
      .rank = 0, .size = 1, .device = 0, .hosts = {"here"}, .store = make_local_store(), .deadline = Deadline::max()};
}

std::unique_ptr<Backend> make_gloo() { return core::find_backend("gloo")->plugin()->create(alone()); }

/// Sets a variable for the duration of a test.
class Setting {
 public:
  Setting(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Setting() { unsetenv(name_); }

 private:
  const char* name_;
};

TEST(Gloo, is_native_only_in_what_the_library_does_with_that_type_and_reduction) {
  const auto gloo = make_gloo();
  const auto native = [&](Op op, DType dtype = DType::f32, ReduceOp reduce = sum) {
    return gloo->native(op, dtype, reduce, Memory::host);
  };
  for (Op op : {Op::send, Op::recv, Op::broadcast, Op::gather, Op::all_gather, Op::scatter, Op::all_to_all, Op::barrier,
                Op::all_gatherv, Op::all_to_allv}) {
    for (int type = 0; type < dtype_count; ++type) EXPECT_TRUE(native(op, static_cast<DType>(type))) << name(op);
  }
  for (Op op : {Op::reduce_scatter, Op::reduce_scatterv, Op::gatherv, Op::scatterv})
    EXPECT_FALSE(native(op)) << name(op);
  for (Op op : {Op::reduce, Op::all_reduce}) {
    for (ReduceOp reduce : {sum, product, min, max}) {
      for (DType dtype : {DType::f64, DType::f32, DType::i64, DType::i32, DType::i16, DType::i8, DType::u8})
        EXPECT_TRUE(native(op, dtype, reduce)) << name(op) << name(dtype) << name(reduce);
      // Rounded at every step of two operands, or not numbers: filled in.
      for (DType dtype : {DType::f16, DType::bf16, DType::boolean})
        EXPECT_FALSE(native(op, dtype, reduce)) << name(op) << name(dtype) << name(reduce);
    }
    EXPECT_TRUE(native(op, DType::f32, avg));
    EXPECT_FALSE(native(op, DType::i32, avg));
    for (ReduceOp reduce : {band, bor, bxor}) EXPECT_FALSE(native(op, DType::i32, reduce));
  }
  EXPECT_FALSE(gloo->native(Op::all_reduce, DType::f32, sum, Memory::cuda));
  EXPECT_FALSE(gloo->has_memory(Memory::cuda));
  EXPECT_FALSE(gloo->version().empty());
}

TEST(Gloo, listens_where_it_is_told_and_refuses_what_is_not_there) {
  for (const char* variable : {"MEDLEY_GLOO_INTERFACE", "GLOO_SOCKET_IFNAME"}) {
    for (const char* place : {"lo", "127.0.0.1", "localhost"}) {
      const Setting set(variable, place);
      EXPECT_NO_THROW(make_gloo()) << place;
    }
    for (const char* place : {"nosuch0", "192.0.2.1"}) {  // the second is reserved for documentation
      const Setting set(variable, place);
      try {
        make_gloo();
        ADD_FAILURE() << place << " was accepted";
      } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find(std::string(variable) + "=" + place), std::string::npos)
            << error.what();
      }
    }
  }
}

TEST(Gloo, ranks_meet_on_the_interface_they_are_told) {
  const Setting set("MEDLEY_GLOO_INTERFACE", "lo");
  run_threads(
      3,
      [](Context& context) {
        std::vector<double> values(1000, context.rank());
        context.world().all_reduce(values, avg);
        EXPECT_EQ(values, std::vector<double>(values.size(), 1.0));
      },
      [](ContextOptions& options) { options.backends = {"gloo"}; });
}

std::size_t threads() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& task : std::filesystem::directory_iterator("/proc/self/task")) ++count;
  return count;
}

TEST(Gloo, leaves_no_thread_behind) {
  run_processes(2, [](Context&) {
    const std::size_t before = threads();
    auto store = make_local_store();
    for (const bool abort : {false, true}) {
      std::vector<std::thread> ranks;
      for (int rank = 0; rank < 3; ++rank) {
        ranks.emplace_back([&, rank] {
          ContextOptions options = options_of(rank, 3, std::make_shared<PrefixStore>(store, abort ? "a" : "b"));
          options.backends = {"gloo"};
          Context context(options);
          Comm world = context.world(), other = world.dup();
          std::vector<float> values(100'000, 1.0f);
          other.all_reduce(values, sum);
          world.barrier();  // an abort would end the operation that others are still in
          if (abort && rank == 1) other.abort();
          if (abort && rank != 1) {
            EXPECT_THROW(other.all_reduce(values, sum), Error);
          }
          world.barrier();
        });
      }
      for (auto& rank : ranks) rank.join();
      // A worker thread that has ended may take a moment to disappear.
      for (int i = 0; i < 1000 && threads() > before; ++i) usleep(1000);
      EXPECT_LE(threads(), before) << (abort ? "after an abort" : "after an orderly end");
    }
  });
}

}  // namespace
}  // namespace medley::test
