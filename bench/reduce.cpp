// The speed of combining and copying buffers, compared with memcpy on the same memory. GB/s counts all bytes
// that the code reads and writes, not the reads that cached stores cause (write-allocate).
//   cmake --preset release -DMEDLEY_BENCH=ON && cmake --build --preset release --target bench_reduce
//   build/release/bin/bench_reduce --benchmark_filter=large
#include <medley/sdk/reduce.hpp>

#include <benchmark/benchmark.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace {

using medley::DType;
using medley::ReduceOp;

struct Free {
  void operator()(std::byte* room) const { std::free(room); }
};

/// Page-aligned memory whose bytes are 1.0 or a small integer in every type, so that no NaN or subnormal
/// slows it.
class Room {
 public:
  Room(DType dtype, std::size_t bytes) {
    room_.reset(static_cast<std::byte*>(std::aligned_alloc(4096, (bytes + 8191) / 4096 * 4096)));
    const double wide = 1.0;
    const float single = 1.0f;
    const std::uint16_t half = 0x3C00, brain = 0x3F80;
    const std::uint64_t whole = 1;
    const std::size_t size = medley::size_of(dtype);
    const void* one = dtype == DType::f64    ? static_cast<const void*>(&wide)
                      : dtype == DType::f32  ? static_cast<const void*>(&single)
                      : dtype == DType::f16  ? static_cast<const void*>(&half)
                      : dtype == DType::bf16 ? static_cast<const void*>(&brain)
                                             : static_cast<const void*>(&whole);
    for (std::size_t i = 0; i + size <= bytes; i += size) std::memcpy(room_.get() + i, one, size);
  }
  std::byte* data() const { return room_.get(); }

 private:
  std::unique_ptr<std::byte, Free> room_;
};

void run_reduce(benchmark::State& state, DType dtype, ReduceOp op, int n, std::size_t bytes, int divisor, bool stream) {
  std::vector<Room> rooms;
  std::vector<const void*> srcs;
  for (int k = 0; k < n; ++k) srcs.push_back(rooms.emplace_back(dtype, bytes).data());
  const Room dst(dtype, bytes);
  const medley::ReduceFn fn = medley::reducer(dtype, op);
  for (auto _ : state) {
    fn(dst.data(), srcs.data(), n, bytes / medley::size_of(dtype), divisor, stream);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * bytes) * (n + 1));
}

using Copy = void (*)(void*, const void*, std::size_t);
void plain_copy(void* dst, const void* src, std::size_t bytes) { std::memcpy(dst, src, bytes); }

void run_copy(benchmark::State& state, Copy copy, std::size_t bytes) {
  const Room src(DType::u8, bytes), dst(DType::u8, bytes);
  for (auto _ : state) {
    copy(dst.data(), src.data(), bytes);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * bytes) * 2);
}

void add(const std::string& where, DType dtype, ReduceOp op, int n, std::size_t bytes, int divisor, bool stream) {
  const std::string label = where + "/" + std::string(medley::name(dtype)) + "/" + std::string(medley::name(op)) +
                            "/n" + std::to_string(n) + (stream ? "/stream" : "");
  benchmark::RegisterBenchmark(
      label.c_str(), [=](benchmark::State& state) { run_reduce(state, dtype, op, n, bytes, divisor, stream); });
}

void add_copies(const std::string& where, std::size_t bytes) {
  for (auto [label, copy] :
       {std::pair{"/memcpy", Copy(plain_copy)}, std::pair{"/copy_stream", Copy(medley::copy_stream)}})
    benchmark::RegisterBenchmark((where + label).c_str(),
                                 [=](benchmark::State& state) { run_copy(state, copy, bytes); });
}

void add_all() {
  struct Size {
    const char* name;
    std::size_t bytes;
  };
  for (const Size& size : {Size{"l1_8k", 8 << 10}, Size{"l2_128k", 128 << 10}, Size{"large_64m", 64 << 20}}) {
    const bool large = size.bytes > (1 << 20);
    add_copies(size.name, size.bytes);
    for (int t = 0; t < medley::dtype_count; ++t)
      for (bool stream : {false, true}) {
        if (stream && !large) continue;
        add(size.name, DType(t), ReduceOp::sum, 2, size.bytes, 1, stream);
      }
    for (ReduceOp op : {ReduceOp::product, ReduceOp::min, ReduceOp::max})
      for (DType dtype : {DType::f32, DType::bf16, DType::i64, DType::i8})
        add(size.name, dtype, op, 2, size.bytes, 1, false);
    for (int divisor : {3, 4})
      add(std::string(size.name) + "/div" + std::to_string(divisor), DType::f32, ReduceOp::avg, 2, size.bytes, divisor,
          false);
  }
  for (int n : {3, 4, 8, 16, 64})
    for (DType dtype : {DType::f32, DType::bf16})
      for (const Size& size : {Size{"l2_16k", 16 << 10}, Size{"large_8m", 8 << 20}})
        add(size.name, dtype, ReduceOp::sum, n, size.bytes, 1, false);
  for (DType dtype : {DType::f32, DType::f16, DType::bf16, DType::i64, DType::u8})
    for (std::size_t count : {1, 2, 4, 7, 8, 16, 64})
      add("tiny_" + std::to_string(count), dtype, ReduceOp::sum, 2, count * medley::size_of(dtype), 1, false);
}

}  // namespace

int main(int argc, char** argv) {
  add_all();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
