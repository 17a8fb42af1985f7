// A rank of a job on two hosts whose network fails, started by outage.sh. It repeats a reduction until the file
// OUTAGE_STOP exists, prints when it was ready, and how and when an operation failed.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <medley/medley.hpp>
#include <thread>

namespace {

long now_ms() {
  using namespace std::chrono;
  return static_cast<long>(duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count());
}

}  // namespace

int main() {
  using namespace std::chrono_literals;
  const char* stop = std::getenv("OUTAGE_STOP");
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  try {
    medley::Context context({.backends = {"gloo"}, .deadline = 120s});
    medley::Comm world = context.world();
    std::vector<std::int64_t> values(1000);
    for (int round = 0;; ++round) {
      values.assign(values.size(), world.rank() == 0 && access(stop, F_OK) == 0 ? 1 : 0);
      world.all_reduce(values, medley::sum);
      if (round == 10) std::printf("ready\n");
      if (values[0] > 0) break;
      std::this_thread::sleep_for(10ms);  // a step of training
    }
    std::printf("finished\n");
  } catch (const medley::Error& error) {
    std::printf("failed %ld %s\n%s\n", now_ms(), name(error.kind()), error.what());
    return 3;
  }
}
