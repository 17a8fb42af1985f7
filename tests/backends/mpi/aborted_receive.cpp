// A message over mpi arrives while its comm is aborted: its receive ends with the abort, and the next message of this
// thread, on another comm, knows nothing of that.
//   medley run --backends mpi,ucx -n 2 -- mpi_aborted_receive FILE       FILE tells rank 0 that the message is on its way
#include <sched.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <medley/medley.hpp>
#include <vector>

namespace {

int failures = 0;

void expect(bool right, const char* what) {
  if (right) return;
  ++failures;
  std::fprintf(stderr, "not so: %s\n", what);
}

}  // namespace

int main(int, char** argv) {
  // The abort of ucx takes several passes of the engine, in which mpi's messages still arrive.
  medley::Context context(std::vector<std::string>{"mpi", "ucx"});
  medley::Comm world = context.world();
  medley::Comm aborted = world.dup(), good = world.dup();
  std::vector<float> values(4, 1.0f);
  for (const char* backend : {"mpi", "ucx"}) aborted.all_reduce(values, medley::sum, {.backend = backend});
  const medley::Options over_mpi{.backend = "mpi", .async = true, .tag = 5};
  if (context.rank() == 1) {
    aborted.send(values, 0, {.backend = "mpi", .tag = 5});
    std::ofstream(argv[1]) << "sent\n";
    good.send(values, 0, {.backend = "mpi", .tag = 5});
    return 0;
  }
  std::vector<float> first(4), second(4);
  medley::Work received = aborted.recv(first, 1, over_mpi);
  while (access(argv[1], F_OK) != 0) sched_yield();  // without Medley, which would receive it
  unlink(argv[1]);
  aborted.abort();
  expect(received.error() != nullptr, "the receive ends with the abort");
  received = {};
  medley::Work next = good.recv(second, 1, over_mpi);
  try {
    next.wait();
    expect(second == values, "the next message arrives");
  } catch (const medley::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    expect(false, "the next message has no error of another comm");
  }
  return failures == 0 ? 0 : 1;
}
