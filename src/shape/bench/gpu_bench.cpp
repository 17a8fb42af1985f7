#include "shape/bench/gpu_bench.hpp"

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <medley/error.hpp>
#include <thread>
#include <vector>

#include "shape/bench/cublaslt.hpp"
#include "shape/bench/kernels.hpp"

namespace medley::shape {
namespace {

constexpr std::size_t workspace_bytes = 32u << 20;  // what PyTorch and cuBLAS use on Hopper
constexpr std::size_t rotated_bytes = 256u << 20;   // several times the largest L2 of the table
constexpr std::size_t alignment = 256;              // as allocators return

void require(cudaError_t status, const char* what) {
  if (status != cudaSuccess)
    throw Error(ErrorKind::system, fmt::format("CUDA: {} failed: {}", what, cudaGetErrorString(status)));
}

std::size_t aligned(std::size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

/// Device memory that grows on demand and is filled with normally distributed values once per type.
class Pool {
 public:
  ~Pool() { cudaFree(data_); }
  void* with(std::size_t bytes, kernels::Fill type, std::uint64_t seed, cudaStream_t stream) {
    if (bytes > size_) {
      cudaFree(data_);
      data_ = nullptr;
      size_ = 0;
      if (cudaMalloc(&data_, bytes) != cudaSuccess) {
        cudaGetLastError();  // otherwise the next call would report the failed allocation
        return nullptr;
      }
      size_ = bytes;
      filled_ = false;
    }
    if (!filled_ || type != type_) {
      kernels::fill_normal(data_, type == kernels::Fill::fp8 ? size_ : size_ / 2, type, seed, stream);
      require(cudaGetLastError(), "filling memory");
      filled_ = true;
      type_ = type;
    }
    return data_;
  }

 private:
  void* data_ = nullptr;
  std::size_t size_ = 0;
  bool filled_ = false;
  kernels::Fill type_ = kernels::Fill::bf16;
};

struct Times {
  double us = 0, mad_us = 0, clock_mhz = 0;
};

}  // namespace

struct GpuBench::State {
  cudaStream_t stream = nullptr;
  std::array<cudaEvent_t, 16> events{};
  void* workspace = nullptr;
  float* clock = nullptr;  // two readings, in pinned memory
  double duty = 0.5;
  std::array<Pool, 3> a, b;  // one per type: filled once, however the types interleave
  Pool c;
  std::unique_ptr<CublasLt> cublas;
  GpuFacts facts;

  ~State() {
    for (cudaEvent_t event : events)
      if (event) cudaEventDestroy(event);
    cudaFree(workspace);
    cudaFreeHost(clock);
    if (stream) cudaStreamDestroy(stream);
  }

  Times time(const std::function<void(int)>& launch);
};

/// Median over groups of back-to-back launches. A short delay precedes each group so that the launches are
/// queued before the first one starts: this measures GPU time, including the gaps between kernels.
Times GpuBench::State::time(const std::function<void(int)>& launch) {
  int next = 0;
  launch(next++);              // loads the kernel
  kernels::delay(60, stream);  // a host that has just woken up takes tens of microseconds to launch
  require(cudaEventRecord(events[0], stream), "recording an event");
  launch(next++);
  launch(next++);
  require(cudaEventRecord(events[1], stream), "recording an event");
  require(cudaEventSynchronize(events[1]), "waiting for a product");
  float ms = 0;
  require(cudaEventElapsedTime(&ms, events[0], events[1]), "reading an event");
  const double estimate = std::max(500.0 * ms, 1.0);  // us of one launch
  const int each = std::clamp(int(400 / estimate), 1, 60);
  const int groups = estimate > 1000 ? 3 : 5;
  const auto began = std::chrono::steady_clock::now();
  kernels::read_clock(50, clock, stream);
  for (int group = 0; group < groups; ++group) {
    kernels::delay(estimate < 40 ? 8.0 * each + 20 : 20, stream);
    require(cudaEventRecord(events[std::size_t(2 * group)], stream), "recording an event");
    for (int i = 0; i < each; ++i) launch(next++);
    require(cudaEventRecord(events[std::size_t(2 * group + 1)], stream), "recording an event");
  }
  kernels::read_clock(50, clock + 1, stream);
  require(cudaStreamSynchronize(stream), "waiting for the launches");
  // at most 10 ms: longer pauses do not cool further
  std::this_thread::sleep_for(std::min<std::chrono::duration<double>>(
      (std::chrono::steady_clock::now() - began) * (1 / duty - 1), std::chrono::milliseconds(10)));
  std::vector<double> us;
  for (int group = 0; group < groups; ++group) {
    require(cudaEventElapsedTime(&ms, events[std::size_t(2 * group)], events[std::size_t(2 * group + 1)]),
            "reading an event");
    us.push_back(1000.0 * ms / each);
  }
  const double middle = median(us);
  for (double& value : us) value = std::abs(value - middle);
  return {middle, median(us), (clock[0] + clock[1]) / 2.0};
}

GpuBench::GpuBench(double duty) : state_(std::make_unique<State>()) {
  int count = 0;
  if (const auto status = cudaGetDeviceCount(&count); status != cudaSuccess || count == 0)
    throw Error(ErrorKind::unavailable, fmt::format("no CUDA GPU here to measure on ({})",
                                                    status == cudaSuccess ? "none found" : cudaGetErrorString(status)));
  State& s = *state_;
  require(cudaSetDevice(0), "choosing the GPU");
  require(cudaStreamCreateWithFlags(&s.stream, cudaStreamNonBlocking), "making a stream");
  for (cudaEvent_t& event : s.events) require(cudaEventCreate(&event), "making an event");
  require(cudaMalloc(&s.workspace, workspace_bytes), "allocating the workspace");
  require(cudaMallocHost(&s.clock, 2 * sizeof(float)), "allocating pinned memory");
  s.duty = duty;
  s.cublas = std::make_unique<CublasLt>();
  cudaDeviceProp properties{};
  require(cudaGetDeviceProperties(&properties, 0), "reading the GPU's properties");
  int runtime = 0;
  require(cudaRuntimeGetVersion(&runtime), "reading CUDA's version");
  s.facts = {.name = properties.name,
             .driver = "",
             .cuda = fmt::format("{}.{}", runtime / 1000, runtime % 1000 / 10),
             .cublas = s.cublas->version(),
             .sms = properties.multiProcessorCount,
             .memory_gb = double(properties.totalGlobalMem) / 1e9,
             .l2_mb = double(properties.l2CacheSize) / (1 << 20)};
  const std::string smi = clocks();
  if (const auto comma = smi.rfind(", "); comma != std::string::npos) s.facts.driver = smi.substr(comma + 2);
}

GpuBench::~GpuBench() = default;

const GpuFacts& GpuBench::facts() const noexcept { return state_->facts; }

std::string GpuBench::clocks() {
  const char* query =
      "nvidia-smi --query-gpu=clocks.sm,clocks.mem,power.draw,temperature.gpu,driver_version "
      "--format=csv,noheader --id=0 2>/dev/null";
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(query, "r"), pclose);
  std::array<char, 256> line{};
  if (!pipe || !fgets(line.data(), int(line.size()), pipe.get())) return "";
  std::string text = line.data();
  text.erase(text.find_last_not_of("\r\n ") + 1);
  return text;
}

std::optional<GemmSample> GpuBench::gemm(const Gemm& g, int best_of) {
  check(g);
  State& s = *state_;
  const PreparedGemm prepared(*s.cublas, g, std::max(1, best_of), workspace_bytes);
  if (prepared.algorithms() == 0) return std::nullopt;
  const auto bytes = [&](std::int64_t rows, std::int64_t cols, int each) {
    return aligned(std::size_t(rows * cols * g.batch * each));
  };
  const std::size_t a_bytes = bytes(g.m, g.k, g.element_bytes()), b_bytes = bytes(g.k, g.n, g.element_bytes()),
                    c_bytes = bytes(g.m, g.n, 2);
  const std::size_t slots = std::clamp<std::size_t>(rotated_bytes / (a_bytes + b_bytes + c_bytes) + 1, 2, 512);
  const auto fill = static_cast<kernels::Fill>(g.type);
  char* a = static_cast<char*>(s.a[std::size_t(g.type)].with(a_bytes * slots, fill, 1, s.stream));
  char* b = static_cast<char*>(s.b[std::size_t(g.type)].with(b_bytes * slots, fill, 2, s.stream));
  char* c = static_cast<char*>(s.c.with(c_bytes * slots, kernels::Fill::bf16, 3, s.stream));
  if (!a || !b || !c) return std::nullopt;
  GemmSample sample{.gemm = g};
  for (int i = 0; i < prepared.algorithms(); ++i) {
    const Times times = s.time([&](int turn) {
      const std::size_t slot = std::size_t(turn) % slots;
      prepared.launch(i, a + slot * a_bytes, b + slot * b_bytes, c + slot * c_bytes, s.workspace, workspace_bytes,
                      s.stream);
    });
    if (i == 0) {
      const GemmAlgorithm chosen = prepared.algorithm(0);
      sample.us = times.us;
      sample.mad_us = times.mad_us;
      sample.clock_mhz = times.clock_mhz;
      sample.algorithm = chosen.id;
      sample.tile = chosen.tile;
      sample.stages = chosen.stages;
      sample.split = chosen.split;
      sample.cluster = chosen.cluster;
      sample.swizzle = chosen.swizzle;
    }
    if (best_of > 1 && (i == 0 || times.us < sample.best_us)) {
      sample.best_us = times.us;
      sample.best_rank = i;
    }
  }
  return sample;
}

double stream_bytes(StreamOp op, std::size_t rows, int cols) {
  const int moved = op == StreamOp::elementwise || op == StreamOp::layer_norm_backward ? 3 : 2;
  return 2.0 * moved * double(rows) * cols;
}

double GpuBench::stream(StreamOp op, std::size_t rows, int cols) {
  if (cols % 8 != 0 || cols < 8 || cols > 32768 || rows == 0)
    throw Error(ErrorKind::invalid,
                fmt::format("cannot measure {} x {}: columns are a multiple of 8 up to 32768", rows, cols));
  State& s = *state_;
  const std::size_t bytes = aligned(rows * std::size_t(cols) * 2);
  const std::size_t slots = std::clamp<std::size_t>(rotated_bytes / (3 * bytes) + 1, 2, 512);
  char* a = static_cast<char*>(s.a[0].with(bytes * slots, kernels::Fill::bf16, 1, s.stream));
  char* b = static_cast<char*>(s.b[0].with(bytes * slots, kernels::Fill::bf16, 2, s.stream));
  char* c = static_cast<char*>(s.c.with(bytes * slots, kernels::Fill::bf16, 3, s.stream));
  if (!a || !b || !c) throw Error(ErrorKind::system, "not enough GPU memory for the bandwidth measurement");
  return s
      .time([&](int turn) {
        const std::size_t at = std::size_t(turn) % slots * bytes;
        if (op == StreamOp::elementwise) kernels::add(a + at, b + at, c + at, rows * std::size_t(cols), s.stream);
        if (op == StreamOp::layer_norm) kernels::layer_norm(a + at, c + at, rows, cols, s.stream);
        if (op == StreamOp::layer_norm_backward)
          kernels::layer_norm_backward(a + at, b + at, c + at, rows, cols, s.stream);
        if (op == StreamOp::softmax) kernels::softmax(a + at, c + at, rows, cols, s.stream);
        require(cudaGetLastError(), "launching a memory-bound kernel");
      })
      .us;
}

}  // namespace medley::shape
