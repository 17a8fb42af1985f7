// The three parts of a window of async messages, apart: posting receives whose messages are not there yet, sending, and waiting for
// messages that have arrived. Run by bench/messages/instructions under callgrind, which counts the instructions of each part.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <medley/medley.hpp>
#include <string>
#include <vector>

namespace {

using namespace medley;

constexpr int window = 8, rounds = 64;   // bench/messages/instructions divides by the rounds
using Block = std::array<std::byte, 24>;

/// Where the two ranks meet: a page of a file, since a barrier of Medley would already receive.
class Meeting {
 public:
  explicit Meeting(const char* path) {
    const int file = open(path, O_RDWR | O_CREAT, 0600);
    void* const page = file < 0 || ftruncate(file, 4096) != 0 ? MAP_FAILED : mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
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
    w.works.push_back(w.comm.recv(Buffer(w.in[static_cast<std::size_t>(i)].data(), 24, DType::u8), 1 - w.comm.rank(), w.options));
  }
}

[[gnu::noinline]] void send_all(Window& w) {
  for (int i = 0; i < window; ++i) {
    w.options.tag = i;
    w.works.push_back(w.comm.send(ConstBuffer(w.out[static_cast<std::size_t>(i)].data(), 24, DType::u8), 1 - w.comm.rank(), w.options));
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
    meeting.meet();   // its message has arrived, so the receive does not spin
    receive_blocking(w, blocking);
  }
}

/// What callgrind collects.
[[gnu::noinline]] void measured(Window& w, Meeting& meeting, Options& blocking) { run(w, meeting, blocking, rounds); }

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "usage: medley run -n 2 -- window_phases BACKEND FILE\n"), 2;
  Context context(std::vector<std::string>{argv[1]});
  Meeting meeting(argv[2]);
  Window w{.comm = context.world(), .options = {}};
  w.options.backend = argv[1];
  Options blocking = w.options;
  w.options.async = true;
  w.works.reserve(2 * window);
  run(w, meeting, blocking, 8);   // memory is touched, symbols are bound
  measured(w, meeting, blocking);
  return 0;
}
