// Compressed collectives in streams, over nccl, have the bits of compression on the host: over a mock of CUDA and NCCL,
// or on a real device if MEDLEY_BACKEND_PATH names the real plugins (tests/gpu/compress). Ranks are processes, which
// share the device.
#include <gtest/gtest.h>

#include <cstdlib>

#include "gpu/compress_job.hpp"
#include "harness/ranks.hpp"

namespace medley::compress::test {
namespace {

class InStreams : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    setenv("MEDLEY_CUDA", "1", 1);
    setenv("MEDLEY_BACKEND_PATH", MOCK_BACKENDS, 0);
  }
};

void run_on_nccl(int ranks, const medley::test::Body& body, const std::string& rules = {}) {
  medley::test::run_processes(
      ranks,
      [&](Context& context) {
        if (test_device().has_codecs()) body(context);  // opened here: CUDA does not survive a fork
      },
      [&](ContextOptions& options) {
        setenv("NCCL_HOSTID", ("rank" + std::to_string(options.rank)).c_str(), 1);
        options.backends = {"shm", "nccl"};
        options.rules = rules;
      });
}

/// What nccl compresses, in streams.
std::vector<std::vector<std::byte>> run_in_streams(Comm& world, Memory memory, const std::string& codec, DType dtype,
                                                   const std::string& backend) {
  Job job{world, memory, codec, dtype, backend, memory == Memory::cuda ? test_device().make_stream() : nullptr};
  const int me = world.rank(), n = world.size();
  const auto size = static_cast<std::size_t>(n);
  constexpr std::int64_t each = 17001;
  const auto values = [&](std::int64_t count, int kind = 0) {
    std::vector<std::byte> all = pack(tensor(kind, count + me), dtype);
    all.resize(static_cast<std::size_t>(count) * size_of(dtype));
    return all;
  };
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::avg, ReduceOp::max}) {
    job.run(values(40001), 0, false, [&](Buffer in, Buffer, const Options& o) { world.all_reduce(in, op, o); });
  }
  for (int step = 0; step < 3; ++step) {
    job.run(values(40001), 0, true,
            [&](Buffer in, Buffer, const Options& o) { world.all_reduce(in, ReduceOp::avg, o); });
  }
  job.run(values(40001, value_kinds), 40001, false,
          [&](Buffer in, Buffer out, const Options& o) { world.all_reduce(in, out, ReduceOp::sum, o); });
  // Ranks without a part
  job.run(values(1), 0, false, [&](Buffer in, Buffer, const Options& o) { world.all_reduce(in, ReduceOp::sum, o); });
  job.run(values(each * n), each, false,
          [&](Buffer in, Buffer out, const Options& o) { world.reduce_scatter(in, out, ReduceOp::sum, o); });
  job.run(values(each), size * each, false,
          [&](Buffer in, Buffer out, const Options& o) { world.all_gather(in, out, o); });
  job.run(values(each * n), size * each, false,
          [&](Buffer in, Buffer out, const Options& o) { world.all_to_all(in, out, o); });
  job.run(values(each * n), 0, false, [&](Buffer in, Buffer, const Options& o) { world.all_to_all(in, in, o); });
  // Rank r sends 700 (r + 1) elements to everybody, and nothing to rank 0.
  std::vector<std::int64_t> sent(size, 700 * (me + 1)), got(size);
  sent[0] = 0;
  for (int r = 0; r < n; ++r) got[static_cast<std::size_t>(r)] = me == 0 ? 0 : 700 * (r + 1);
  job.run(values(700 * (me + 1) * (n - 1)), static_cast<std::size_t>(me == 0 ? 0 : 350 * n * (n + 1)), false,
          [&](Buffer in, Buffer out, const Options& o) { world.all_to_allv(in, {sent}, out, {got}, o); });
  return job.results;
}

TEST_F(InStreams, collectives_have_the_results_of_host_memory) {
  for (const int n : {2, 3}) {
    run_on_nccl(n, [n](Context& context) {  // one job for all: starting ranks on a GPU takes seconds
      Comm world = context.world();
      for (const auto& [text, kernel] : kernels) {
        for (const DType dtype : floats) {
          if (n > 2 && dtype != DType::f32) continue;
          const auto on_host = run_in_streams(world, Memory::host, text, dtype, "shm"),
                     in_streams = run_in_streams(world, Memory::cuda, text, dtype, "nccl");
          ASSERT_EQ(on_host.size(), in_streams.size());
          for (std::size_t i = 0; i < on_host.size(); ++i) {
            EXPECT_EQ(on_host[i], in_streams[i])
                << "operation " << i << ", " << text << " of " << name(dtype) << ", " << n << " ranks";
          }
        }
      }
    });
  }
}

/// On one lane, plain collectives and the kernels of compressed ones run in different streams.
TEST_F(InStreams, compressed_and_plain_collectives_keep_the_order_of_memory) {
  constexpr std::int64_t count = 30000;
  const auto run = [](Comm& world, Buffer tensor, const std::string& backend) {
    std::vector<Work> works;
    void* const stream = backend == "nccl" ? test_device().make_stream() : nullptr;
    for (int i = 0; i < 12; ++i) {
      const char* codec = i % 3 == 0 ? "none" : i % 3 == 1 ? "int8" : "bf16";
      works.push_back(world.all_reduce(tensor, ReduceOp::avg,
                                       {.backend = backend, .async = true, .stream = stream, .compress = codec}));
    }
    for (Work& work : works) work.wait_host();
  };
  run_on_nccl(2, [&](Context& context) {
    Comm world = context.world();
    std::vector<std::byte> values = pack(tensor(0, count + world.rank()), DType::f32), result(count * 4);
    values.resize(count * 4);
    DeviceImage image(values.size());
    image.write(values.data());
    run(world, {image.data(), count, DType::f32, Memory::cuda, 0}, "nccl");
    image.read(result.data());
    run(world, {values.data(), count, DType::f32}, "shm");
    EXPECT_EQ(result, values);
  });
}

TEST_F(InStreams, a_rule_compresses_what_has_kernels_and_leaves_the_rest) {
  run_on_nccl(
      2,
      [&](Context& context) {
        Comm world = context.world();
        constexpr std::int64_t count = 5000;
        std::vector<std::byte> values = pack(tensor(0, count), DType::f32), seen(values.size());
        DeviceImage image(values.size());
        const Buffer buffer(image.data(), count, DType::f32, Memory::cuda, 0);
        image.write(values.data());
        void* const stream = test_device().make_stream();
        world.broadcast(buffer, 0, {.stream = stream}).wait_host();
        image.read(seen.data());
        EXPECT_EQ(seen, values) << "a broadcast is not compressed";
        world.all_reduce(buffer, ReduceOp::max, {.stream = stream}).wait_host();
        image.read(seen.data());
        EXPECT_NE(seen, values) << "an all_reduce is";
        try {
          world.broadcast(buffer, 0, {.stream = stream, .compress = "int4"});
          ADD_FAILURE() << "not refused";
        } catch (const Error& error) {
          EXPECT_NE(std::string(error.what()).find("name a host backend, which stages it"), std::string::npos)
              << error.what();
        }
        world.barrier();
      },
      "*@cuda=nccl+int4; *=shm");
}

}  // namespace
}  // namespace medley::compress::test
