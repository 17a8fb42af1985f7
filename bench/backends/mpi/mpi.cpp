// Medley's overhead over MPI: each operation through Medley and as the same direct non-blocking MPI call,
// interleaved in one run of two ranks; also MPI's blocking call and Medley's algorithm over MPI's messages.
// Exit 1 when Medley takes more than 5 % or 0.3 µs longer than the non-blocking call, whichever is more.
//   medley run -n 2 --backends mpi --mpirun mpirun.openmpi bench_mpi_overhead_openmpi
#include <fmt/format.h>
#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <functional>
#include <medley/medley.hpp>
#include <vector>

namespace {

using namespace medley;
using std::chrono::steady_clock;

constexpr int turns = 61;

void wait(MPI_Request request) {
  int done = 0;
  for (int tries = 0; !done; ++tries) {
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    // After about 20 µs the peer may need this core, as Medley's own waiting assumes.
    if (!done && tries > 200) sched_yield();
  }
}

/// The four candidates for one operation; each executes `operations` one after the other.
struct Race {
  const char* what;
  int operations;
  std::function<void()> direct, through, blocking, filled;
};

double microseconds_each(int times, const std::function<void()>& call) {
  const auto begin = steady_clock::now();
  for (int i = 0; i < times; ++i) call();
  return std::chrono::duration<double, std::micro>(steady_clock::now() - begin).count() / times;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Medians of many short interleaved rounds. Medley's overhead is the median of the differences within a
/// round, because other load on the machine slows neighbouring rounds equally. Rank 0 judges.
bool compare(Comm& comm, const Race& race, std::size_t bytes) {
  const std::array ways{race.direct, race.through, race.blocking, race.filled};
  const int times = bytes <= 4096 ? 100 : bytes <= 65536 ? 20 : 4;
  std::array<std::vector<double>, 4> taken;
  std::vector<double> more;
  for (int turn = 0; turn < turns; ++turn) {
    for (std::size_t i = 0; i < ways.size(); ++i) {
      const std::size_t way = (i + static_cast<std::size_t>(turn)) % ways.size();
      if (!ways[way]) continue;
      comm.barrier();
      taken[way].push_back(microseconds_each(times, ways[way]) / race.operations);
    }
    more.push_back(taken[1].back() - taken[0].back());
  }
  std::array<double, 4> each{};
  for (std::size_t way = 0; way < ways.size(); ++way) each[way] = taken[way].empty() ? 0 : median(taken[way]);
  const double added = median(more);
  const bool good = added <= std::max(0.1, 0.05 * each[0]);
  if (comm.rank() == 0) {
    fmt::print("{:<12}{:>10}{:>12.2f}{:>12.2f}{:>+10.2f}{:>12.2f}", race.what, bytes, each[0], each[1], added, each[2]);
    fmt::print("{:>12}  {}\n", race.filled ? fmt::format("{:.2f}", each[3]) : "", good ? "" : "above the bound");
    std::fflush(stdout);
  }
  return good;
}

Race ping_pong(Comm& comm, std::vector<float>& in, std::vector<float>& out) {
  const int first = comm.rank() == 0, peer = 1 - comm.rank(), count = static_cast<int>(in.size());
  const auto send = [=, &in] {
    MPI_Request request;
    MPI_Isend(in.data(), count, MPI_FLOAT, peer, 1, MPI_COMM_WORLD, &request);
    wait(request);
  };
  const auto receive = [=, &out] {
    MPI_Request request;
    MPI_Irecv(out.data(), count, MPI_FLOAT, peer, 1, MPI_COMM_WORLD, &request);
    wait(request);
  };
  return {"send_recv",
          2,  // there and back; the result is for one message, as usual
          [=] {
            if (first) send();
            receive();
            if (!first) send();
          },
          [=, &comm, &in, &out] {
            if (first) comm.send(in, peer);
            comm.recv(out, peer);
            if (!first) comm.send(in, peer);
          },
          [=, &in, &out] {
            if (first) MPI_Send(in.data(), count, MPI_FLOAT, peer, 1, MPI_COMM_WORLD);
            MPI_Recv(out.data(), count, MPI_FLOAT, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (!first) MPI_Send(in.data(), count, MPI_FLOAT, peer, 1, MPI_COMM_WORLD);
          },
          {}};
}

// In place, as Medley calls MPI: the cost of a copy is not Medley's.
Race all_reduce(Comm& comm, std::vector<float>& data) {
  const int count = static_cast<int>(data.size());
  return {"all_reduce",
          1,
          [=, &data] {
            MPI_Request request;
            MPI_Iallreduce(MPI_IN_PLACE, data.data(), count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &request);
            wait(request);
          },
          [&] { comm.all_reduce(data, sum, {.algorithm = "native"}); },
          [=, &data] { MPI_Allreduce(MPI_IN_PLACE, data.data(), count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); },
          [&] { comm.all_reduce(data, sum, {.algorithm = "recursive_doubling"}); }};
}

Race broadcast(Comm& comm, std::vector<float>& data) {
  const int count = static_cast<int>(data.size());
  return {"broadcast",
          1,
          [=, &data] {
            MPI_Request request;
            MPI_Ibcast(data.data(), count, MPI_FLOAT, 0, MPI_COMM_WORLD, &request);
            wait(request);
          },
          [&] { comm.broadcast(data, 0, {.algorithm = "native"}); },
          [=, &data] { MPI_Bcast(data.data(), count, MPI_FLOAT, 0, MPI_COMM_WORLD); },
          [&] { comm.broadcast(data, 0, {.algorithm = "binomial"}); }};
}

Race all_to_all(Comm& comm, std::vector<float>& in, std::vector<float>& out) {
  const int part = static_cast<int>(in.size()) / comm.size();
  return {"all_to_all",
          1,
          [=, &in, &out] {
            MPI_Request request;
            MPI_Ialltoall(in.data(), part, MPI_FLOAT, out.data(), part, MPI_FLOAT, MPI_COMM_WORLD, &request);
            wait(request);
          },
          [&] { comm.all_to_all(in, out, {.algorithm = "native"}); },
          [=, &in, &out] { MPI_Alltoall(in.data(), part, MPI_FLOAT, out.data(), part, MPI_FLOAT, MPI_COMM_WORLD); },
          [&] { comm.all_to_all(in, out, {.algorithm = "pairwise"}); }};
}

bool compare_all(Comm& comm) {
  bool good = true;
  if (comm.rank() == 0)
    fmt::print("{:<12}{:>10}{:>12}{:>12}{:>10}{:>12}{:>12}\n", "what", "bytes", "MPI_I… µs", "Medley µs", "more µs",
               "blocking µs", "filled µs");
  for (std::size_t bytes = 4; bytes <= (1 << 20); bytes *= 8) {
    std::vector<float> in(bytes / sizeof(float)), out(in);
    good &= compare(comm, ping_pong(comm, in, out), bytes);
    good &= compare(comm, all_reduce(comm, in), bytes);
    good &= compare(comm, broadcast(comm, in), bytes);
    if (in.size() >= 2) good &= compare(comm, all_to_all(comm, in, out), bytes);
  }
  return good;
}

}  // namespace

int main() {
  try {
    Context context(std::vector<std::string>{"mpi"});
    Comm comm = context.world();
    if (comm.size() != 2)
      throw Error(ErrorKind::invalid, "two ranks are needed: medley run -n 2 --backends mpi bench_mpi_overhead_…");
    const bool good = compare_all(comm);
    comm.barrier();
    return good || comm.rank() != 0 ? 0 : 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_mpi_overhead: {}\n", error.what());
    return 2;
  }
}
