// The three parts of a window of async messages, apart: posting receives whose messages are not there yet, sending, and
// waiting for messages that have arrived. Run by bench/messages/instructions under callgrind, which counts the
// instructions of each part. With a third argument, a number of seconds, it prints the median time of each part of
// windows that both ranks run back to back:
//   medley run -n 2 --backends shm -- window_phases shm FILE 0.3
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <medley/medley.hpp>
#include <string>
#include <vector>

namespace {

using namespace medley;

constexpr int window = 8, rounds = 64;  // bench/messages/instructions divides by the rounds
using Block = std::array<std::byte, 24>;

/// Where the two ranks meet: a page of a file, since a barrier of Medley would already receive.
class Meeting {
 public:
  explicit Meeting(const char* path) {
    const int file = open(path, O_RDWR | O_CREAT, 0600);
    void* const page = file < 0 || ftruncate(file, 4096) != 0
                           ? MAP_FAILED
                           : mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (page == MAP_FAILED) throw Error(ErrorKind::system, std::string("cannot map ") + path);
    close(file);
    count_ = static_cast<std::atomic<int>*>(page);
  }
  void meet() {
    count_->fetch_add(1);
    for (met_ += 2; count_->load() < met_;) sched_yield();
  }

 private:
  std::atomic<int>* count_;
  int met_ = 0;
};

struct Window {
  Comm comm;
  Options options;
  std::array<Block, window> in{}, out{};
  std::vector<Work> works{};
};

[[gnu::noinline]] void post_receives(Window& w) {
  for (int i = 0; i < window; ++i) {
    w.options.tag = i;
    w.works.push_back(
        w.comm.recv(Buffer(w.in[static_cast<std::size_t>(i)].data(), 24, DType::u8), 1 - w.comm.rank(), w.options));
  }
}

[[gnu::noinline]] void send_all(Window& w) {
  for (int i = 0; i < window; ++i) {
    w.options.tag = i;
    w.works.push_back(w.comm.send(ConstBuffer(w.out[static_cast<std::size_t>(i)].data(), 24, DType::u8),
                                  1 - w.comm.rank(), w.options));
  }
}

[[gnu::noinline]] void wait_for_all(Window& w) {
  for (Work& work : w.works) work.wait();
  w.works.clear();
}

/// One each way, blocking; rank 1 answers.
[[gnu::noinline]] void send_blocking(Window& w, Options& options) {
  w.comm.send(ConstBuffer(w.out[0].data(), 8, DType::u8), 1 - w.comm.rank(), options);
}
[[gnu::noinline]] void receive_blocking(Window& w, Options& options) {
  w.comm.recv(Buffer(w.in[0].data(), 8, DType::u8), 1 - w.comm.rank(), options);
}

void run(Window& w, Meeting& meeting, Options& blocking, int times) {
  for (int round = 0; round < times; ++round) {
    meeting.meet();
    post_receives(w);
    meeting.meet();
    send_all(w);
    meeting.meet();
    wait_for_all(w);
  }
  for (int round = 0; round < times; ++round) {
    meeting.meet();
    send_blocking(w, blocking);
    meeting.meet();  // its message has arrived, so the receive does not spin
    receive_blocking(w, blocking);
  }
}

/// What callgrind collects.
[[gnu::noinline]] void measured(Window& w, Meeting& meeting, Options& blocking) { run(w, meeting, blocking, rounds); }

double median_ns(std::vector<double>& times) {
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

void time_parts(Window& w, double seconds) {
  using clock = std::chrono::steady_clock;
  const auto ns = [](clock::duration d) { return std::chrono::duration<double, std::nano>(d).count(); };
  std::vector<double> posting, sending, waiting, whole;
  const auto windows = static_cast<int>(seconds * 2e5);  // about 5 µs each; the same on both ranks
  for (int i = 0; i < windows; ++i) {
    const auto begun = clock::now();
    post_receives(w);
    const auto posted = clock::now();
    send_all(w);
    const auto sent = clock::now();
    wait_for_all(w);
    const auto ended = clock::now();
    posting.push_back(ns(posted - begun));
    sending.push_back(ns(sent - posted));
    waiting.push_back(ns(ended - sent));
    whole.push_back(ns(ended - begun));
  }
  std::printf("rank %d: 8 receives posted %.0f ns, 8 sends %.0f, waiting %.0f, the window %.0f\n", w.comm.rank(),
              median_ns(posting), median_ns(sending), median_ns(waiting), median_ns(whole));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4)
    return std::fprintf(stderr, "usage: medley run -n 2 -- window_phases BACKEND FILE [SECONDS]\n"), 2;
  Context context(std::vector<std::string>{argv[1]});
  Meeting meeting(argv[2]);
  Window w{.comm = context.world(), .options = {}};
  w.options.backend = argv[1];
  Options blocking = w.options;
  w.options.async = true;
  w.works.reserve(2 * window);
  if (argc == 4) return time_parts(w, std::atof(argv[3])), 0;
  run(w, meeting, blocking, 8);  // memory is touched, symbols are bound
  measured(w, meeting, blocking);
  return 0;
}
