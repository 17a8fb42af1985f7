// What an operation costs through Medley beyond the same NCCL call with the same events: both by turns in one run, two
// ranks, all_reduce in place. Prints the host's time per launch and the time until the result is there.
#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <nccl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <medley/medley.hpp>
#include <thread>
#include <vector>

#include "bootstrap/store_client.hpp"
#include "bootstrap/store_server.hpp"

namespace {

using std::chrono::steady_clock;

constexpr int ranks = 2, launches = 40;

struct Meeting {
  std::atomic<std::uint16_t> port{0};
  std::atomic<bool> has_id{false};
  ncclUniqueId id{};
};

void check(cudaError_t result) {
  if (result != cudaSuccess) throw std::runtime_error(cudaGetErrorString(result));
}
void check(ncclResult_t result) {
  if (result != ncclSuccess) throw std::runtime_error(ncclGetErrorString(result));
}

double microseconds_since(steady_clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(steady_clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

/// The same call and events as Medley's nccl lane makes: the user's stream is followed, and follows.
class Direct {
 public:
  Direct(Meeting& meeting, int rank) {
    if (rank == 0) {
      check(ncclGetUniqueId(&meeting.id));
      meeting.has_id = true;
    }
    while (!meeting.has_id) std::this_thread::yield();
    check(ncclCommInitRank(&comm_, ranks, meeting.id, rank));
    int least = 0, greatest = 0;
    check(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    check(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, greatest));
    for (auto& pair : events_) {
      for (cudaEvent_t& event : pair) check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    }
  }
  void all_reduce(float* data, std::size_t count, cudaStream_t user) {
    auto& [ready, done] = events_[next_++ % std::size(events_)];
    check(cudaEventRecord(ready, user));
    check(cudaStreamWaitEvent(stream_, ready, 0));
    check(ncclAllReduce(data, data, count, ncclFloat32, ncclMax, comm_, stream_));
    check(cudaEventRecord(done, stream_));
    check(cudaStreamWaitEvent(user, done, 0));
  }

 private:
  ncclComm_t comm_ = nullptr;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t events_[64][2] = {};
  unsigned next_ = 0;
};

struct Times {
  std::vector<double> launch, whole;
};

/// Launches one after the other, then one at a time to its end.
template <class Once>
void measure(Times& times, cudaStream_t user, Once once) {
  const auto begin = steady_clock::now();
  for (int i = 0; i < launches; ++i) once();
  times.launch.push_back(microseconds_since(begin) / launches);
  check(cudaStreamSynchronize(user));
  for (int i = 0; i < 5; ++i) {
    const auto alone = steady_clock::now();
    once();
    check(cudaStreamSynchronize(user));
    times.whole.push_back(microseconds_since(alone));
  }
}

void run_rank(Meeting& meeting, int rank) {
  setenv("NCCL_HOSTID", fmt::format("rank{}", rank).c_str(), 0);   // both may share one device
  while (meeting.port == 0) std::this_thread::yield();
  auto store = std::make_shared<medley::StoreClient>(
      medley::StoreAddress{.host = "127.0.0.1", .port = meeting.port, .ports = 1, .token = "bench", .rank = rank, .size = ranks},
      steady_clock::now() + std::chrono::seconds(60));
  medley::Context context({.backends = {"nccl"}, .rank = rank, .size = ranks, .store = store});
  medley::Comm world = context.world();
  Direct direct(meeting, rank);
  cudaStream_t user = nullptr;
  check(cudaStreamCreateWithFlags(&user, cudaStreamNonBlocking));
  constexpr std::size_t largest = 16 << 20;
  float* data = nullptr;
  check(cudaMalloc(reinterpret_cast<void**>(&data), largest));
  check(cudaMemset(data, 0, largest));
  for (std::size_t bytes : {std::size_t{4}, std::size_t{4096}, std::size_t{256} << 10, largest}) {
    const std::size_t count = bytes / sizeof(float);
    const medley::Buffer buffer(data, static_cast<std::int64_t>(count), medley::DType::f32, medley::Memory::cuda, 0);
    Times through_medley, directly;
    const int blocks = bytes > (1 << 20) ? 10 : 60;   // over sockets a large one takes milliseconds
    for (int block = 0; block < blocks; ++block) {
      measure(through_medley, user, [&] { world.all_reduce(buffer, medley::max, {.stream = user}); });
      measure(directly, user, [&] { direct.all_reduce(data, count, user); });
    }
    if (rank != 0) continue;
    const double m = median(through_medley.launch), d = median(directly.launch);
    fmt::print("{:>9} B  launch: medley {:6.2f} us, nccl {:6.2f} us, {:+.2f} us ({:+.1f} %)   whole: {:8.1f} us, {:8.1f} us "
               "({:+.1f} %)\n", bytes, m, d, m - d, (m / d - 1) * 100, median(through_medley.whole), median(directly.whole),
               (median(through_medley.whole) / median(directly.whole) - 1) * 100);
    std::fflush(stdout);
  }
  world.barrier();
}

}  // namespace

int main() {
  auto* meeting = new (mmap(nullptr, sizeof(Meeting), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Meeting;
  std::vector<pid_t> children;
  for (int rank = 0; rank < ranks; ++rank) {   // CUDA must not have been touched before a fork
    const pid_t child = fork();
    if (child > 0) {
      children.push_back(child);
      continue;
    }
    try {
      run_rank(*meeting, rank);
      std::fflush(nullptr);
      _exit(0);
    } catch (const std::exception& error) {
      fmt::print(stderr, "rank {}: {}\n", rank, error.what());
      _exit(1);
    }
  }
  medley::StoreServerOptions options;
  options.token = "bench";
  const medley::StoreServer server(options);
  meeting->port = server.port();
  int failed = 0;
  for (pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    failed += status != 0;
  }
  return failed ? 1 : 0;
}
