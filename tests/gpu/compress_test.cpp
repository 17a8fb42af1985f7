// Compression on the device gives the bits of the host's codecs: over a mock of CUDA, which runs the kernels'
// arithmetic value by value, or over a real device if MEDLEY_BACKEND_PATH names the real plugin (tests/gpu/compress).
#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>

#include "compress/tensors.hpp"
#include "conformance/device_memory.hpp"
#include "gpu/compress_job.hpp"
#include "harness/ranks.hpp"

namespace medley::compress::test {
namespace {

constexpr std::int64_t counts[] = {1, 63, 65, 256, 257, 1000, 16384, 16385, 40001};

class Device : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    setenv("MEDLEY_CUDA", "1", 1);
    setenv("MEDLEY_BACKEND_PATH", MOCK_BACKENDS, 0);
    setenv("MEDLEY_TEST_RANKS", "threads", 1);  // each has a driver of its own
  }
  void SetUp() override {
    if (!test_device().has_codecs()) GTEST_SKIP() << "the device plugin was built without kernels of compression";
  }
};

/// A frame in pinned memory, as the device encodes it.
class PinnedFrame {
 public:
  PinnedFrame(const Codec& codec, DType dtype, std::int64_t count) : bytes_(most_frame_bytes(codec, dtype, count)) {
    memory_ = static_cast<std::byte*>(test_device().pinned(block()));
    std::memset(memory_, 0xEE, block());
    device_ = {kernels.at(codec.spec().text()), dtype, count, memory_ + begin + frame_header_bytes};
  }
  ~PinnedFrame() { test_device().release_pinned(memory_, block()); }
  PinnedFrame(const PinnedFrame&) = delete;
  PinnedFrame& operator=(const PinnedFrame&) = delete;
  const DeviceFrame& device() const { return device_; }
  std::vector<std::byte> chunks() const { return {device_.chunks, device_.chunks + bytes_ - frame_header_bytes}; }
  std::byte after() const { return device_.chunks[bytes_ - frame_header_bytes]; }
  void fill(const std::vector<std::byte>& frame) {
    std::memcpy(device_.chunks, frame.data() + frame_header_bytes, bytes_ - frame_header_bytes);
  }

 private:
  static constexpr std::size_t begin = 88;  // as algorithms/device_frames.cpp: the chunks begin at a multiple of 128
  std::size_t block() const { return begin + bytes_ + 64; }
  std::size_t bytes_;
  std::byte* memory_;
  DeviceFrame device_;
};

std::vector<std::byte> chunks_of_frame(const std::vector<std::byte>& frame) {
  return {frame.begin() + frame_header_bytes, frame.end()};
}

/// Calls `check` for every codec, element type, number and kind of values; every other tensor begins one element after
/// an aligned address.
void each_case(const std::function<void(const Codec&, DType, const std::vector<std::byte>&, std::size_t skip)>& check) {
  for (const auto& [text, kernel] : kernels) {
    for (const DType dtype : floats) {
      for (const std::int64_t count : counts) {
        for (int kind = 0; kind < value_kinds + 2; ++kind) {
          SCOPED_TRACE(testing::Message()
                       << text << " of " << count << " " << name(dtype) << ", values of kind " << kind);
          check(codec(parse_spec(text)), dtype, pack(tensor(kind, count), dtype), kind % 2 == 0 ? 0 : size_of(dtype));
          if (testing::Test::HasFailure()) return;
        }
      }
    }
  }
}

TEST_F(Device, encodes_the_bits_of_the_host) {
  void* const stream = test_device().make_stream();
  each_case([&](const Codec& codec, DType dtype, const std::vector<std::byte>& in, std::size_t skip) {
    const auto count = static_cast<std::int64_t>(in.size() / size_of(dtype));
    DeviceImage elements(in.size() + 64);
    test_device().copy_now(elements.data() + skip, in.data(), in.size());
    PinnedFrame frame(codec, dtype, count);
    test_device().encode(frame.device(), elements.data() + skip, nullptr, stream);
    finish(stream);
    EXPECT_EQ(frame.chunks(), chunks_of_frame(encode(codec, dtype, in)));
    EXPECT_EQ(frame.after(), std::byte{0xEE}) << "nothing is written behind the frame";
  });
}

TEST_F(Device, decodes_to_the_bits_of_the_host) {
  void* const stream = test_device().make_stream();
  each_case([&](const Codec& codec, DType dtype, const std::vector<std::byte>& in, std::size_t skip) {
    const auto count = static_cast<std::int64_t>(in.size() / size_of(dtype));
    const std::vector<std::byte> written = encode(codec, dtype, in);
    PinnedFrame frame(codec, dtype, count);
    frame.fill(written);
    DeviceImage elements(in.size() + 64);
    const std::vector<std::byte> before(in.size() + 64, std::byte{0x55});
    elements.write(before.data());
    test_device().decode(frame.device(), elements.data() + skip, stream);
    finish(stream);
    std::vector<std::byte> all(in.size() + 64);
    elements.read(all.data());
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(skip),
               end = begin + static_cast<std::ptrdiff_t>(in.size());
    EXPECT_EQ(std::vector<std::byte>(begin, end), decode(codec, dtype, count, written));
    EXPECT_EQ(*end, std::byte{0x55}) << "nothing is written behind the tensor";
  });
}

TEST_F(Device, keeps_the_residuals_of_the_host) {
  void* const stream = test_device().make_stream();
  for (const auto& [text, kernel] : kernels) {
    const Codec& one = codec(parse_spec(text));
    constexpr std::int64_t count = 20001;
    std::vector<float> residual(count), seen(count);
    DeviceImage on_device(count * sizeof(float)), elements(count * sizeof(float));
    on_device.write(reinterpret_cast<const std::byte*>(residual.data()));
    PinnedFrame frame(one, DType::f32, count);
    for (int step = 0; step < 4; ++step) {
      // One of them not finite
      const std::vector<std::byte> in = pack(tensor(step == 2 ? value_kinds : 0, count + step), DType::f32);
      const std::vector<std::byte> values(in.begin(), in.begin() + count * 4);
      elements.write(values.data());
      test_device().encode(frame.device(), elements.data(), reinterpret_cast<float*>(on_device.data()), stream);
      finish(stream);
      EXPECT_EQ(frame.chunks(), chunks_of_frame(encode(one, DType::f32, values, &residual)))
          << text << " in step " << step;
      on_device.read(reinterpret_cast<std::byte*>(seen.data()));
      EXPECT_EQ(std::memcmp(seen.data(), residual.data(), count * sizeof(float)), 0) << text << " in step " << step;
    }
  }
}

std::vector<std::vector<std::byte>> run_all(Comm& world, Memory memory, const std::string& codec, DType dtype) {
  Job job{world, memory, codec, dtype};
  const int me = world.rank(), n = world.size(), root = n - 1;
  const auto size = static_cast<std::size_t>(n);
  constexpr std::int64_t each = 17001;
  const auto values = [&](std::int64_t count, int kind = 0) { return pack(tensor(kind, count + me), dtype); };
  const auto trimmed = [&](std::int64_t count, int kind = 0) {
    std::vector<std::byte> all = values(count, kind);
    all.resize(static_cast<std::size_t>(count) * size_of(dtype));
    return all;
  };
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::avg, ReduceOp::min, ReduceOp::max, ReduceOp::product}) {
    job.run(trimmed(40001), 0, false, [&](Buffer in, Buffer, const Options& o) { world.all_reduce(in, op, o); });
  }
  for (int step = 0; step < 3; ++step) {
    job.run(trimmed(40001), 0, true,
            [&](Buffer in, Buffer, const Options& o) { world.all_reduce(in, ReduceOp::avg, o); });
  }
  job.run(trimmed(40001, value_kinds), 0, false,
          [&](Buffer in, Buffer, const Options& o) { world.all_reduce(in, ReduceOp::sum, o); });
  // Ranks without a part
  job.run(trimmed(1), 0, false, [&](Buffer in, Buffer, const Options& o) { world.all_reduce(in, ReduceOp::sum, o); });
  job.run(trimmed(each * n), each, false,
          [&](Buffer in, Buffer out, const Options& o) { world.reduce_scatter(in, out, ReduceOp::sum, o); });
  job.run(trimmed(each), size * each, false,
          [&](Buffer in, Buffer out, const Options& o) { world.all_gather(in, out, o); });
  job.run(trimmed(each * n), size * each, false,
          [&](Buffer in, Buffer out, const Options& o) { world.all_to_all(in, out, o); });
  job.run(trimmed(each), 0, false, [&](Buffer in, Buffer, const Options& o) { world.broadcast(in, root, o); });
  job.run(trimmed(each), me == root ? each : 0, false,
          [&](Buffer in, Buffer out, const Options& o) { world.reduce(in, out, ReduceOp::sum, root, o); });
  job.run(trimmed(each), me == root ? size * each : 0, false,
          [&](Buffer in, Buffer out, const Options& o) { world.gather(in, out, root, o); });
  job.run(trimmed(each * n), each, false,
          [&](Buffer in, Buffer out, const Options& o) { world.scatter(in, out, root, o); });
  return job.results;
}

TEST_F(Device, collectives_have_the_results_of_host_memory) {
  for (const int n : {2, 3}) {
    for (const auto& [text, kernel] : kernels) {
      for (const DType dtype : floats) {
        if (n > 2 && dtype != DType::f32) continue;  // the types differ in the kernels, not between ranks
        medley::test::run_threads(n, [&, text = text](Context& context) {
          Comm world = context.world();
          const auto on_host = run_all(world, Memory::host, text, dtype),
                     on_device = run_all(world, Memory::cuda, text, dtype);
          ASSERT_EQ(on_host.size(), on_device.size());
          for (std::size_t i = 0; i < on_host.size(); ++i) {
            EXPECT_EQ(on_host[i], on_device[i])
                << "operation " << i << ", " << text << " of " << name(dtype) << ", " << n << " ranks";
          }
        });
        if (HasFailure()) return;
      }
    }
  }
}

/// Residuals are in device memory; host memory would cross the bus at full size.
TEST_F(Device, keeps_residuals_out_of_host_memory) {
  medley::test::run_threads(2, [](Context& context) {
    ErrorFeedback feedback;
    DeviceImage image(40000);
    const std::vector<std::byte> in = pack(tensor(0, 10000), DType::f32);
    test_device().copy_now(image.data(), in.data(), in.size());
    context.world()
        .all_reduce(Buffer(image.data(), 10000, DType::f32, Memory::cuda, 0), sum,
                    {.backend = "shm", .compress = "int8", .feedback = &feedback})
        .wait_host();
    EXPECT_EQ(feedback.count(), 10000);
    EXPECT_TRUE(feedback.residual().empty());
  });
}

}  // namespace
}  // namespace medley::compress::test
