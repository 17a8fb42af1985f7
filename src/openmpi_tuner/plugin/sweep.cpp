// The plugin's body: every algorithm of every collective at every size, in interleaved rounds on the same ranks.
#include "openmpi_tuner/sweep.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <cstdlib>
#include <medley/error.hpp>

#include "openmpi_tuner/plugin/algorithms.hpp"
#include "openmpi_tuner/plugin/collectives.hpp"

namespace medley::openmpi_tuner {
namespace {

constexpr int most_rounds = 25, least_rounds = 5;
constexpr double far_behind = 1.5;  // of the fastest's median, after least_rounds

/// MPI and its tool interface from start to end.
class Session {
 public:
  Session() {
    // Open MPI's components look for its symbols among the global ones, and this plugin was opened locally.
    Dl_info library{};
    if (dladdr(reinterpret_cast<const void*>(&MPI_Init), &library) != 0)
      dlopen(library.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
    setenv("OMPI_MCA_coll_tuned_use_dynamic_rules", "1", 1);  // otherwise the variables have no effect
    // The rules replace those in use, so they are compared with none
    unsetenv("OMPI_MCA_coll_tuned_dynamic_rules_filename");
    int provided = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SINGLE, &provided);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() {
    MPI_T_finalize();
    MPI_Finalize();
  }
};

std::string library_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  MPI_Get_library_version(text, &length);
  const std::string version(text, static_cast<std::size_t>(length));
  return version.substr(0, version.find(','));
}

bool rank_0_says(bool answer) {
  int shared = answer;
  MPI_Bcast(&shared, 1, MPI_INT, 0, MPI_COMM_WORLD);
  return shared != 0;
}

double slowest(double mine) {
  double all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return all;
}

/// Microseconds of one call: the slowest rank's mean over a few, after a barrier.
double sample(Collective& collective, MPI_Comm comm, int calls) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  for (int i = 0; i < calls; ++i) collective.run(comm);
  return slowest((MPI_Wtime() - begin) * 1e6 / calls);
}

struct Candidate {
  Algorithm algorithm;
  ForcedComm comm;
  std::vector<double> samples{};
  bool out = false;  ///< it cannot do this, or is far behind
};

double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1) + 0.5)];
}

/// Interleaved, so that noise affects all alike. Every decision follows from times that all ranks have.
void measure(Collective& collective, std::vector<Candidate>& candidates, double seconds) {
  for (Candidate& candidate : candidates) {
    candidate.samples.clear();
    candidate.out = !collective.gives_the_right_result(candidate.comm.get());
  }
  // Where one rank sends or receives everything, others would run ahead of it in a batch.
  const int calls =
      collective.rooted()
          ? 1
          : std::clamp(static_cast<int>(200 / std::max(0.1, sample(collective, candidates.front().comm.get(), 2))), 1,
                       50);
  const double begin = MPI_Wtime();
  for (int round = 0; round < most_rounds; ++round) {
    if (round >= least_rounds && rank_0_says(MPI_Wtime() - begin > seconds)) break;
    double fastest = 1e300;
    for (Candidate& candidate : candidates) {
      if (candidate.out) continue;
      candidate.samples.push_back(sample(collective, candidate.comm.get(), calls));
      fastest = std::min(fastest, quantile(candidate.samples, 0.5));
    }
    if (round + 1 < least_rounds) continue;
    for (Candidate& candidate : candidates) {
      const bool own_choice = candidate.algorithm.number == 0;
      if (!candidate.out && !own_choice && quantile(candidate.samples, 0.5) > far_behind * fastest)
        candidate.out = true;
    }
  }
}

Cell cell_of(const std::string& collective, int ranks, std::int64_t bytes, const std::vector<Candidate>& candidates) {
  Cell cell{collective, ranks, bytes, {}};
  for (const Candidate& candidate : candidates) {
    if (candidate.samples.empty()) continue;
    cell.timings.push_back({candidate.algorithm, quantile(candidate.samples, 0.25), quantile(candidate.samples, 0.5),
                            quantile(candidate.samples, 0.75)});
  }
  return cell;
}

void sweep(const SweepRequest& request, const SweepHooks& hooks, SweepResult& result) {
  const Session session;
  int ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &result.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  result.library = library_version();
  if (ranks < 2)
    throw Error(ErrorKind::invalid,
                "measuring collectives takes at least two ranks: use -n, mpirun or srun --mpi=pmix");
  const double per_cell = request.seconds / static_cast<double>(request.collectives.size() * request.sizes.size());
  std::size_t done = 0;
  for (const std::string& name : request.collectives) {
    AlgorithmVariable variable(name);
    Collective collective(name, *std::max_element(request.sizes.begin(), request.sizes.end()));
    std::vector<Candidate> candidates;
    for (const Algorithm& algorithm : variable.algorithms())
      candidates.push_back({algorithm, ForcedComm(variable, algorithm)});
    for (const std::int64_t size : request.sizes) {
      const std::int64_t bytes = collective.set_size(size);
      if (result.rank == 0)
        hooks.progress(
            fmt::format("{} of {} bytes", name, bytes),
            static_cast<double>(done) / static_cast<double>(request.collectives.size() * request.sizes.size()));
      ++done;
      if (rank_0_says(result.rank == 0 && hooks.stop())) return;
      measure(collective, candidates, per_cell);
      if (candidates.front().out)
        throw Error(ErrorKind::system,
                    fmt::format("{} of {} bytes fails or gives a wrong result with Open MPI's own choice of algorithm",
                                name, bytes));
      if (result.rank == 0) result.cells.push_back(cell_of(name, ranks, bytes, candidates));
    }
  }
}

}  // namespace
}  // namespace medley::openmpi_tuner

extern "C" __attribute__((visibility("default"))) void medley_openmpi_sweep(
    const medley::openmpi_tuner::SweepRequest& request, const medley::openmpi_tuner::SweepHooks& hooks,
    medley::openmpi_tuner::SweepResult& result);
void medley_openmpi_sweep(const medley::openmpi_tuner::SweepRequest& request,
                          const medley::openmpi_tuner::SweepHooks& hooks, medley::openmpi_tuner::SweepResult& result) {
  medley::openmpi_tuner::sweep(request, hooks, result);
}
