#include "backends/mpi/connect.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "backends/mpi/errors.hpp"

namespace medley::mpi {
namespace {

/// Makes progress in Medley; throws when the deadline has passed.
void go_on(const CommParams& params) {
  if (std::chrono::steady_clock::now() > params.deadline) {
    throw Error(
        ErrorKind::timeout,
        fmt::format("making comm {}: its ranks make other comms and did not come to this one in time", params.name));
  }
  params.progress();
  std::this_thread::sleep_for(std::chrono::microseconds(50));
}

/// A member's turn: a rank makes one comm at a time. Threads of one rank may make comms in any order, so turns are
/// acquired for all members together, in ascending MPI rank, which cannot deadlock.
class Turns {
 public:
  Turns(const CommParams& params, std::vector<int> ranks, Store& store) : store_(store) {
    std::sort(ranks.begin(), ranks.end());
    for (int rank : ranks) {
      const std::string key = fmt::format("turn/{}", rank);
      while (store_.add(key, 1) != 1) {
        store_.add(key, -1);
        try {
          go_on(params);
        } catch (...) {
          give_back();
          throw;
        }
      }
      taken_.push_back(key);
    }
  }
  ~Turns() {
    try {
      give_back();
    } catch (...) {  // the store is gone, and the job with it
    }
  }
  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;

 private:
  void give_back() {
    for (const std::string& key : taken_) store_.add(key, -1);
    taken_.clear();
  }
  Store& store_;
  std::vector<std::string> taken_;
};

/// The blocking calls, with every member about to enter them.
Communicators make_blocking(const std::vector<int>& ranks) {
  MPI_Group world = MPI_GROUP_NULL, chosen = MPI_GROUP_NULL;
  check(MPI_Comm_group(MPI_COMM_WORLD, &world), "MPI_Comm_group");
  const int listed = MPI_Group_incl(world, static_cast<int>(ranks.size()), ranks.data(), &chosen);
  MPI_Group_free(&world);
  check(listed, "MPI_Group_incl");
  Communicators comms;
  const int made = MPI_Comm_create_group(MPI_COMM_WORLD, chosen, 0, &comms.users);
  MPI_Group_free(&chosen);
  check(made, "MPI_Comm_create_group");
  check(MPI_Comm_set_errhandler(comms.users, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  check(MPI_Comm_dup(comms.users, &comms.internal), "MPI_Comm_dup");  // with the handler
  return comms;
}

Communicators make(const CommParams& params, const std::vector<int>& ranks) {
  Library& library = Library::of_process();
  const auto made = std::make_shared<Communicators>();
  try {
    library.call_blocking(ranks, params.deadline, [made, ranks] {
      Library::of_process().reclaim();
      *made = make_blocking(ranks);
    });
  } catch (const Error&) {
    const auto lost = std::find(ranks.begin(), ranks.end(), library.lost_rank());
    if (lost == ranks.end()) throw;
    const int rank = static_cast<int>(lost - ranks.begin());
    throw Error(ErrorKind::rank_lost, fmt::format("rank {} was lost while the comm was made", rank), {.ranks = {rank}});
  }
  return *made;
}

}  // namespace

Communicators connect_members(const CommParams& params, const std::vector<int>& mpi_ranks, Store& turns) try {
  params.all_gather("");  // all members are here
  if (params.rank != 0) {
    params.all_gather("");  // and the first holds everybody's turn
    return make(params, mpi_ranks);
  }
  const Turns held(params, mpi_ranks, turns);
  params.all_gather("");
  return make(params, mpi_ranks);  // once it returns all members have entered it
} catch (...) {
  Library::of_process().note_abort();
  throw;
}

}  // namespace medley::mpi
