// Bare MPI collectives, sampled exactly as `medley bench` samples its own; compiled unchanged against any
// MPI. Run by bench/mpi/compare; alone: mpirun -n 2 mpi_bench --op all_reduce --sizes 4:64M --seconds 0.1
// Only the C API: MPI's old C++ classes do not compile without warnings.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>

#include "rows.hpp"

namespace medley::bench {
namespace {

struct World {
  int rank, ranks;
};

World world() {
  World w{};
  MPI_Comm_rank(MPI_COMM_WORLD, &w.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &w.ranks);
  return w;
}

/// Rank 0 names the clock's shared page; ranks on several hosts could not share it.
std::unique_ptr<tune::SampleClock> shared_clock(const World& w) {
  MPI_Comm host;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
  int on_host = 0;
  MPI_Comm_size(host, &on_host);
  MPI_Comm_free(&host);
  if (on_host != w.ranks) throw std::invalid_argument("all ranks must be on one host: they share a clock");

  std::unique_ptr<tune::SampleClock> clock;
  char name[64] = {};
  if (w.rank == 0) {
    clock.reset(new tune::SampleClock(tune::SampleClock::create(w.ranks)));
    clock->name().copy(name, sizeof name - 1);
  }
  MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
  if (w.rank != 0) clock.reset(new tune::SampleClock(tune::SampleClock::open(name, w.rank, w.ranks)));
  clock->while_waiting([] {  // both MPIs make progress only inside calls
    int flag = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
  });
  clock->meet();
  return clock;
}

/// The buffers of one row: the full tensor on one side, one part of it or the full tensor on the other.
struct Buffers {
  std::span<float> in, out;
};

Buffers slices(Op op, std::size_t elements, const World& w, Buffers whole) {
  const std::size_t part = elements / static_cast<std::size_t>(w.ranks);
  switch (op) {
    case Op::reduce_scatter: return {whole.in.first(elements), whole.out.first(part)};
    case Op::all_gather: return {whole.in.first(part), whole.out.first(elements)};
    case Op::broadcast: return {{}, whole.out.first(elements)};
    case Op::reduce: return {whole.in.first(elements), whole.out.first(w.rank == 0 ? elements : 0)};
    case Op::gather: return {whole.in.first(part), whole.out.first(w.rank == 0 ? elements : 0)};
    case Op::scatter: return {whole.in.first(w.rank == 0 ? elements : 0), whole.out.first(part)};
    case Op::barrier: return {};
    default: return {whole.in.first(elements), whole.out.first(elements)};
  }
}

void call(Op op, const Buffers& b, const World& w) {
  const int in = static_cast<int>(b.in.size()), out = static_cast<int>(b.out.size());
  switch (op) {
    case Op::all_reduce: MPI_Allreduce(b.in.data(), b.out.data(), in, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); break;
    case Op::reduce_scatter:
      MPI_Reduce_scatter_block(b.in.data(), b.out.data(), out, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      break;
    case Op::all_gather: MPI_Allgather(b.in.data(), in, MPI_FLOAT, b.out.data(), in, MPI_FLOAT, MPI_COMM_WORLD); break;
    case Op::all_to_all:
      MPI_Alltoall(b.in.data(), in / w.ranks, MPI_FLOAT, b.out.data(), out / w.ranks, MPI_FLOAT, MPI_COMM_WORLD);
      break;
    case Op::broadcast: MPI_Bcast(b.out.data(), out, MPI_FLOAT, 0, MPI_COMM_WORLD); break;
    case Op::reduce: MPI_Reduce(b.in.data(), b.out.data(), in, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD); break;
    case Op::gather: MPI_Gather(b.in.data(), in, MPI_FLOAT, b.out.data(), in, MPI_FLOAT, 0, MPI_COMM_WORLD); break;
    case Op::scatter: MPI_Scatter(b.in.data(), out, MPI_FLOAT, b.out.data(), out, MPI_FLOAT, 0, MPI_COMM_WORLD); break;
    default: MPI_Barrier(MPI_COMM_WORLD); break;
  }
}

/// Output first, input last, as a computation leaves them. Rank r sends r + 1 everywhere.
void dirty(Op op, const Buffers& b, const World& w) {
  bench::dirty(b.out, op == Op::broadcast && w.rank == 0 ? 1.f : -1.f);
  bench::dirty(b.in, static_cast<float>(w.rank + 1));
}

float expected(Op op, std::size_t index, std::size_t size, const World& w) {
  if (op == Op::broadcast || op == Op::scatter) return 1;
  if (op == Op::all_reduce || op == Op::reduce_scatter || op == Op::reduce)
    return static_cast<float>(w.ranks * (w.ranks + 1) / 2);
  return static_cast<float>(index / (size / static_cast<std::size_t>(w.ranks)) + 1);
}

/// One untimed call whose whole output is compared: benchmarking a wrong call would be worthless.
void check(Op op, const Buffers& b, const World& w) {
  dirty(op, b, w);
  call(op, b, w);
  for (std::size_t i = 0; i < b.out.size(); ++i) {
    if (b.out[i] != expected(op, i, b.out.size(), w)) {
      throw std::runtime_error(std::string(name_of(op)) + " of " + std::to_string(b.out.size()) +
                               " elements gave a wrong value at " + std::to_string(i));
    }
  }
}

std::vector<Row> measure_all(const Options& options, const World& w, tune::SampleClock& clock) {
  const std::size_t most = tune::elements_of(Op::all_gather, options.sizes.back(), sizeof(float), w.ranks);
  const auto aligned = [&] {
    auto* memory = static_cast<float*>(std::aligned_alloc(4096, (most * sizeof(float) + 4095) / 4096 * 4096));
    if (!memory) throw std::bad_alloc();
    return std::unique_ptr<float, decltype(&std::free)>(memory, &std::free);
  };
  const auto in = aligned(), out = aligned();
  std::vector<Row> rows;
  for (const Op op : options.ops) {
    std::optional<std::size_t> last;
    for (const std::size_t size : options.sizes) {
      const std::size_t elements = tune::elements_of(op, size, sizeof(float), w.ranks);
      if (elements == last) continue;  // rounded up to the same size as the previous row
      const Buffers b = slices(op, elements, w, {{in.get(), most}, {out.get(), most}});
      check(op, b, w);
      rows.push_back({op, elements * sizeof(float),
                      measure(
                          clock, options.measure, [&] { dirty(op, b, w); }, [&] { call(op, b, w); })});
      last = elements;
      if (op == Op::barrier) break;
    }
  }
  return rows;
}

std::string library_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  MPI_Get_library_version(text, &length);
  const std::string version(text);
  // MPICH's version has more lines, about how it was built.
  return version.substr(0, version.find('\n'));
}

}  // namespace
}  // namespace medley::bench

int main(int argc, char** argv) {
  using namespace medley::bench;
  MPI_Init(&argc, &argv);
  const World w = world();
  try {
    const Options options = parse_options(argc, argv);
    const auto clock = shared_clock(w);
    const auto rows = measure_all(options, w, *clock);
    const std::string version = library_version();
    if (w.rank == 0) {
      write_json(options.json, version.find("Open MPI") != std::string::npos ? "openmpi" : "mpich", version, w.ranks,
                 rows);
    }
  } catch (const std::exception& error) {
    if (w.rank == 0 || !dynamic_cast<const std::invalid_argument*>(&error)) {
      std::fprintf(stderr, "mpi_bench: %s\n", error.what());
    }
    MPI_Abort(MPI_COMM_WORLD, dynamic_cast<const std::invalid_argument*>(&error) ? 2 : 1);
  }
  MPI_Finalize();
  return 0;
}
