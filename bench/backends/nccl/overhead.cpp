// An operation's overhead through Medley relative to the same NCCL call with the same events: both
// interleaved in one run of two ranks. Prints the host's time per launch and the time to the result. Exit 1
// when a launch takes more than 5 % or 0.3 µs longer, whichever is more.
//   nccl_overhead [largest size in bytes [word]]      word: only the comparisons whose name contains it, such as "send"
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <medley/medley.hpp>
#include <string>
#include <thread>
#include <vector>

#include "bootstrap/store_client.hpp"
#include "bootstrap/store_server.hpp"
#include "direct.hpp"

namespace {

using direct::check;
using std::chrono::steady_clock;

constexpr int ranks = 2;

/// Shared by the ranks before they have a comm.
struct Meeting {
  std::atomic<std::uint16_t> port{0};
  std::atomic<bool> has_ids{false};
  ncclUniqueId collectives{}, messages{};
};

double microseconds_since(steady_clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(steady_clock::now() - begin).count();
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

using Once = std::function<void()>;

struct Race {
  const char* what;
  Once through, directly;
  int operations = 1;  ///< of each call
};

/// How many repetitions, so that large sizes over sockets end within a minute.
struct Effort {
  int blocks, launches, alone;
  Effort(std::size_t bytes, int operations)
      : blocks(bytes <= 65536       ? 25
               : bytes <= (1 << 20) ? 9
                                    : 5),
        launches(bytes <= 65536       ? 40
                 : bytes <= (1 << 20) ? 8
                                      : 2),
        alone(bytes <= 65536 ? 5 : 2) {
    // As many operations, whatever a call has: with more of them under way, both sides wait for the device.
    launches = std::max(2, launches / operations);
  }
};

struct Times {
  std::vector<double> launch, whole;

  /// Launches back to back, then one at a time to completion.
  void take(const Effort& effort, cudaStream_t user, const Once& once) {
    const auto begin = steady_clock::now();
    for (int i = 0; i < effort.launches; ++i) once();
    launch.push_back(microseconds_since(begin) / effort.launches);
    check(cudaStreamSynchronize(user));
    for (int i = 0; i < effort.alone; ++i) {
      const auto alone = steady_clock::now();
      once();
      check(cudaStreamSynchronize(user));
      whole.push_back(microseconds_since(alone));
    }
  }
};

/// Medley's overhead is the median of the differences within a round, because other load on the machine slows
/// neighbours equally.
bool compare(const Race& race, std::size_t bytes, cudaStream_t user, bool speaks) {
  const Effort effort(bytes, race.operations);
  Times medley, nccl;
  medley.take(effort, user, race.through);  // connects and warms up
  nccl.take(effort, user, race.directly);
  medley = nccl = {};
  for (int block = 0; block < effort.blocks; ++block) {  // the starting candidate alternates, too
    if (block % 2 == 0) medley.take(effort, user, race.through);
    nccl.take(effort, user, race.directly);
    if (block % 2 != 0) medley.take(effort, user, race.through);
  }
  std::vector<double> more;
  for (std::size_t i = 0; i < nccl.launch.size(); ++i) more.push_back(medley.launch[i] - nccl.launch[i]);
  const double direct = median(nccl.launch), added = median(more), whole = median(medley.whole),
               alone = median(nccl.whole);
  const bool good = added <= std::max(0.3, direct * 0.05);
  const double ratio = median(medley.launch) / direct;
  if (speaks) {
    fmt::print(
        "{:<14} {:>9} B  launch: nccl {:6.2f} us, medley {:6.2f} us ({:.2f}x), {:+.2f} us{}   whole: {:9.1f} us, "
        "{:9.1f} us ({:+.1f} %)\n",
        race.what, bytes, direct, median(medley.launch), ratio, added, good ? "" : " (!)", alone, whole,
        (whole / alone - 1) * 100);
    std::fflush(stdout);
  }
  return good;
}

float* device_memory(std::size_t bytes) {
  float* data = nullptr;
  check(cudaMalloc(reinterpret_cast<void**>(&data), bytes));
  check(cudaMemset(data, 0, bytes));
  return data;
}

/// All comparisons at one size. The buffers hold `count` elements on the large side.
std::vector<Race> races(medley::Comm& world, direct::Lane& collectives, direct::Lane& messages, float* in, float* out,
                        std::size_t count, cudaStream_t user) {
  const auto all = static_cast<std::int64_t>(count), each = all / ranks;
  const auto on_device = [](float* data, std::int64_t elements) {
    return medley::Buffer(data, elements, medley::DType::f32, medley::Memory::cuda, 0);
  };
  const medley::Buffer whole_in = on_device(in, all), whole_out = on_device(out, all), part_in = on_device(in, each),
                       part_out = on_device(out, each);
  const medley::Options options{.stream = user};
  std::vector<Race> list;
  list.push_back({"all_reduce", [=, &world] { world.all_reduce(whole_in, medley::max, options); },
                  [=, &collectives] { collectives.all_reduce(in, in, count, user); }});
  list.push_back({"broadcast", [=, &world] { world.broadcast(whole_in, 0, options); },
                  [=, &collectives] { collectives.broadcast(in, count, user); }});
  list.push_back({"send, recv",
                  [=, &world] {
                    if (world.rank() == 0) {
                      world.send(whole_in, 1, options);
                    } else {
                      world.recv(whole_in, 0, options);
                    }
                  },
                  [=, &messages] { messages.message(in, count, user); }});
  // As a pipeline stage issues them: several in flight, then one wait for all.
  list.push_back({"8 sends, recvs",
                  [=, &world] {
                    medley::Work works[8];
                    const medley::Options later{.async = true, .stream = user};
                    for (medley::Work& work : works) {
                      work = world.rank() == 0 ? world.send(whole_in, 1, later) : world.recv(whole_in, 0, later);
                    }
                    for (medley::Work& work : works) work.wait();
                  },
                  [=, &messages] {
                    for (int i = 0; i < 8; ++i) messages.message(in, count, user);
                  },
                  8});
  if (each == 0) return list;
  list.push_back({"all_gather", [=, &world] { world.all_gather(part_in, whole_out, options); },
                  [=, &collectives] { collectives.all_gather(in, out, count, user); }});
  list.push_back({"reduce_scatter", [=, &world] { world.reduce_scatter(whole_in, part_out, medley::max, options); },
                  [=, &collectives] { collectives.reduce_scatter(in, out, count, user); }});
  list.push_back({"all_to_all", [=, &world] { world.all_to_all(whole_in, whole_out, options); },
                  [=, &collectives] { collectives.all_to_all(in, out, count, user); }});
  return list;
}

bool run_rank(Meeting& meeting, int rank, std::size_t largest, const std::string& only) {
  setenv("NCCL_HOSTID", fmt::format("rank{}", rank).c_str(), 0);  // both may share one device
  while (meeting.port == 0) std::this_thread::yield();
  auto store = std::make_shared<medley::StoreClient>(
      medley::StoreAddress{
          .host = "127.0.0.1", .port = meeting.port, .ports = 1, .token = "bench", .rank = rank, .size = ranks},
      steady_clock::now() + std::chrono::seconds(60));
  medley::Context context({.backends = {"nccl"}, .rank = rank, .size = ranks, .store = store});
  const auto begin = steady_clock::now();
  medley::Comm world = context.world();
  if (rank == 0) {
    fmt::print("the world is made in {:.0f} ms, ", microseconds_since(begin) / 1000);
    check(ncclGetUniqueId(&meeting.collectives));
    check(ncclGetUniqueId(&meeting.messages));
    meeting.has_ids = true;
  }
  while (!meeting.has_ids) std::this_thread::yield();
  const auto by_hand = steady_clock::now();
  direct::Lane collectives(meeting.collectives, ranks, rank);
  if (rank == 0) fmt::print("a communicator of NCCL in {:.0f} ms\n", microseconds_since(by_hand) / 1000);
  direct::Lane messages(meeting.messages, ranks, rank);
  cudaStream_t user = nullptr;
  check(cudaStreamCreateWithFlags(&user, cudaStreamNonBlocking));
  float* const in = device_memory(largest);
  float* const out = device_memory(largest);
  bool good = true;
  for (std::size_t bytes = 4; bytes <= largest; bytes *= bytes < 65536 ? 128 : 32) {
    for (const Race& race : races(world, collectives, messages, in, out, bytes / sizeof(float), user)) {
      if (std::string(race.what).find(only) == std::string::npos) continue;
      good = compare(race, bytes, user, rank == 0) && good;
    }
  }
  world.barrier();
  return good;
}

}  // namespace

int main(int count, char** arguments) {
  const std::size_t largest = count > 1 ? std::strtoull(arguments[1], nullptr, 10) : std::size_t{64} << 20;
  const std::string only = count > 2 ? arguments[2] : "";
  auto* meeting =
      new (mmap(nullptr, sizeof(Meeting), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Meeting;
  std::vector<pid_t> children;
  for (int rank = 0; rank < ranks; ++rank) {  // CUDA must not be initialised before a fork
    const pid_t child = fork();
    if (child > 0) {
      children.push_back(child);
      continue;
    }
    try {
      const bool good = run_rank(*meeting, rank, largest, only);
      std::fflush(nullptr);
      _exit(good || rank != 0 ? 0 : 1);
    } catch (const std::exception& error) {
      fmt::print(stderr, "rank {}: {}\n", rank, error.what());
      _exit(2);
    }
  }
  medley::StoreServerOptions options;
  options.token = "bench";
  const medley::StoreServer server(options);
  meeting->port = server.port();
  int worst = 0;
  for (pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    worst = std::max(worst, WIFEXITED(status) ? WEXITSTATUS(status) : 2);
  }
  return worst;
}
