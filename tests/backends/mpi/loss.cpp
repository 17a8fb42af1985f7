// A rank of a job over mpi in which rank 1 is killed; started by loss_test.cpp. Its argument selects the moment. A
// survivor prints its error, then that mpi refuses it from then on.
#include <dlfcn.h>

#include <csignal>
#include <cstdio>
#include <medley/medley.hpp>
#include <string>
#include <vector>

namespace {

constexpr int victim = 1;

// The MPI call in which this process dies, if it is the victim.
std::string fatal_call;

/// MPI's own functions, which ours below interpose: symbols of a program precede those of its plugins.
template <class... Arguments>
int call_mpi(const char* name, Arguments... arguments) {
  if (fatal_call == name) raise(SIGKILL);
  void* mpi = dlopen("libmpich.so.12", RTLD_NOW | RTLD_NOLOAD);
  if (!mpi) mpi = dlopen("libmpi.so.40", RTLD_NOW | RTLD_NOLOAD);
  return reinterpret_cast<int (*)(Arguments...)>(dlsym(mpi, ("P" + std::string(name)).c_str()))(arguments...);
}

std::string told(const medley::Error& error) {
  std::string text = error.kind() == medley::ErrorKind::rank_lost ? "rank_lost" : error.what();
  for (int rank : error.context().ranks) text += " " + std::to_string(rank);
  return text;
}

/// The victim lives until all have finished what it took part in.
void let_all_finish(medley::Comm& world) {
  std::vector<float> done(1);
  for (int rank : {0, 2}) {
    if (world.rank() == victim) world.recv(done, rank);
    if (world.rank() == rank) world.send(done, victim);
  }
}

void live(const std::string& moment, medley::Comm& world, medley::Comm& survivors) {
  const auto die_when = [&](const char* now) {
    if (world.rank() == victim && moment == now) raise(SIGKILL);
  };
  std::vector<float> large(1 << 20, 1.0f);
  world.all_reduce(large, medley::sum);
  let_all_finish(world);
  die_when("before");
  if (moment == "receive" && world.rank() != victim) world.recv(large, victim);
  die_when("receive");
  if (moment == "copying") {  // its message is being copied out of its memory
    std::vector<float> huge(1 << 24, 1.0f);
    if (world.rank() != victim) world.recv(huge, victim);
    for (int rank : {0, 2}) {
      if (world.rank() == victim) world.send(huge, rank, {.async = true}).test();
    }
    die_when("copying");
  }
  if (moment == "comm" && world.rank() != victim) world.dup();
  die_when("comm");
  if (moment == "making") {  // all others are inside MPI
    if (world.rank() == victim) fatal_call = "MPI_Comm_create_group";
    world.dup();
  }
  if (moment == "bystander") {  // the victim is not a member of the running operation's comm
    if (world.rank() == 0) survivors.recv(large, 1);
    die_when("bystander");
    world.barrier();
  }
  medley::Work work = world.all_reduce(large, medley::sum, {.async = true});
  if (world.rank() == victim) work.test();
  die_when("inside");
  work.wait();
  die_when("after");
  world.barrier();
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int MPI_Comm_create_group(void* comm, void* group, int tag,
                                                                            void* made) {
  return call_mpi("MPI_Comm_create_group", comm, group, tag, made);
}
extern "C" __attribute__((visibility("default"))) int MPI_Finalize() { return call_mpi("MPI_Finalize"); }

/// Rank 1 is not a member of `survivors`, which goes on over shm although this process has lost MPI.
int go_on_without_mpi() {
  medley::Context context(std::vector<std::string>{"shm", "mpi"});
  medley::Comm world = context.world();
  medley::Comm survivors = world.subset({0, 2});
  world.barrier({.backend = "mpi"});
  let_all_finish(world);
  if (world.rank() == victim) raise(SIGKILL);
  try {
    world.barrier({.backend = "mpi"});
  } catch (const medley::Error& error) {
    std::printf("told: %s\n", told(error).c_str());
  }
  std::vector<float> one(1, 1.0f);
  medley::Work work;
  if (survivors.rank() == 0) work = survivors.recv(one, 1, {.backend = "shm", .async = true});
  const bool came =
      work.wait_for(std::chrono::milliseconds(500));  // longer than comms go without a look for lost ranks
  if (survivors.rank() == 1) survivors.send(one, 0, {.backend = "shm"});
  work.wait();
  survivors.all_reduce(one, medley::sum, {.backend = "shm"});
  std::printf("over shm: %g\n", one[0]);
  return came && survivors.rank() == 0;
}

int main(int, char** argv) {
  if (std::string(argv[1]) == "apart") return go_on_without_mpi();
  medley::Context context(std::vector<std::string>{"mpi"});
  medley::Comm world = context.world();
  medley::Comm survivors = world.subset({0, 2});
  if (std::string(argv[1]) == "finalising") {
    world.barrier();
    if (world.rank() == victim) fatal_call = "MPI_Finalize";
    std::printf("done\n");
    return 0;
  }
  try {
    live(argv[1], world, survivors);
    std::printf("nobody told me\n");
  } catch (const medley::Error& error) {
    std::printf("told: %s\n", told(error).c_str());
  }
  try {
    std::vector<float> one(1);
    survivors.all_reduce(one, medley::sum);
    std::printf("mpi goes on\n");
  } catch (const medley::Error& error) {
    std::printf("refused: %s\n", error.kind() == medley::ErrorKind::rank_lost ? "rank_lost" : error.what());
  }
  return 0;
}
