// The cost of Medley's thread hop: all_reduce of f32 between two processes, with gloo::allreduce called
// directly and through Medley, interleaved in one run. Prints the minimum and median time of both per size.
// bench_gloo_hop [ROUNDS]
#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <medley/medley.hpp>
#include <vector>

namespace {

using std::chrono::steady_clock;

double microseconds(const std::function<void()>& call) {
  const auto start = steady_clock::now();
  call();
  return std::chrono::duration<double, std::micro>(steady_clock::now() - start).count();
}

struct Times {
  std::vector<double> all;
  double least() { return *std::min_element(all.begin(), all.end()); }
  double median() {
    std::nth_element(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2), all.end());
    return all[all.size() / 2];
  }
};

std::shared_ptr<gloo::rendezvous::Context> connect(const std::string& folder, int rank) {
  gloo::rendezvous::FileStore store(folder);
  auto device = gloo::transport::tcp::CreateDevice("127.0.0.1");
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, 2);
  context->connectFullMesh(store, device);
  return context;
}

void run(int rank, const std::string& folder, int rounds) {
  const auto direct = connect(folder, rank);
  medley::Context context(std::vector<std::string>{"gloo"});
  medley::Comm world = context.world();
  if (rank == 0)
    std::printf("%10s %34s %34s\n", "bytes", "gloo alone: least, median µs", "through Medley: least, median µs");
  for (std::size_t count = 1; count <= (1u << 20); count *= 16) {
    std::vector<float> values(count, 1.0f);
    const auto by_gloo = [&] {
      gloo::AllreduceOptions options(direct);
      options.setOutput(values.data(), count);
      options.setReduceFunction(static_cast<void (*)(void*, const void*, const void*, std::size_t)>(&gloo::max<float>));
      gloo::allreduce(options);
    };
    const auto by_medley = [&] { world.all_reduce(values, medley::max); };
    Times alone, through;
    const int times = count > 100'000 ? rounds / 10 + 1 : rounds;
    for (int i = 0; i < times; ++i) {
      by_gloo();  // synchronises: the wait for the other rank is not part of what follows
      alone.all.push_back(microseconds(by_gloo));
      by_medley();
      through.all.push_back(microseconds(by_medley));
    }
    if (rank == 0) {
      std::printf("%10zu %17.1f %16.1f %17.1f %16.1f\n", count * sizeof(float), alone.least(), alone.median(),
                  through.least(), through.median());
    }
  }
}

}  // namespace

int main(int count, char** words) {
  const int rounds = count > 1 ? std::atoi(words[1]) : 2000;
  if (rounds < 1) {
    std::fprintf(stderr, "bench_gloo_hop: \"%s\" is no number of rounds\n", words[1]);
    return 2;
  }
  std::string folder = std::filesystem::temp_directory_path() / "medley-gloo-hop-XXXXXX";
  if (!mkdtemp(folder.data())) {
    std::fprintf(stderr, "bench_gloo_hop: cannot make the folder %s\n", folder.c_str());
    return 2;
  }
  setenv("MEDLEY_WORLD_SIZE", "2", 1);
  setenv("MEDLEY_STORE", ("@medley-gloo-hop-" + std::to_string(getpid())).c_str(), 1);
  setenv("MEDLEY_TOKEN", "hop", 1);
  const pid_t child = fork();
  const int rank = child == 0 ? 1 : 0;
  setenv("MEDLEY_RANK", std::to_string(rank).c_str(), 1);
  run(rank, folder, rounds);
  if (rank == 1) return 0;
  int status = 0;
  waitpid(child, &status, 0);
  std::filesystem::remove_all(folder);
  return status == 0 ? 0 : 1;
}
