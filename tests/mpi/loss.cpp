// A rank of a job over mpi in which rank 1 is killed; started by loss_test.cpp. Its argument says when that
// is. A survivor prints what it was told, then that mpi refuses it from then on.
#include <csignal>
#include <cstdio>
#include <medley/medley.hpp>
#include <string>
#include <vector>

namespace {

constexpr int victim = 1;

std::string told(const medley::Error& error) {
  std::string text = error.kind() == medley::ErrorKind::rank_lost ? "rank_lost" : error.what();
  for (int rank : error.context().ranks) text += " " + std::to_string(rank);
  return text;
}

void live(const std::string& moment, medley::Comm& world, medley::Comm& survivors) {
  const auto die_when = [&](const char* now) {
    if (world.rank() == victim && moment == now) raise(SIGKILL);
  };
  std::vector<float> large(1 << 20, 1.0f);
  world.all_reduce(large, medley::sum);
  std::vector<float> done(1);  // the victim lives until everybody has finished what it took part in
  for (int rank : {0, 2}) {
    if (world.rank() == victim) world.recv(done, rank);
    if (world.rank() == rank) world.send(done, victim);
  }
  die_when("before");
  if (moment == "receive" && world.rank() != victim) world.recv(large, victim);
  die_when("receive");
  if (moment == "copying") {  // what it sends is being copied out of its memory
    std::vector<float> huge(1 << 24, 1.0f);
    if (world.rank() != victim) world.recv(huge, victim);
    for (int rank : {0, 2}) {
      if (world.rank() == victim) world.send(huge, rank, {.async = true}).test();
    }
    die_when("copying");
  }
  if (moment == "comm" && world.rank() != victim) world.dup();
  die_when("comm");
  if (moment == "bystander") {  // the victim is no member of what is under way
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

int main(int, char** argv) {
  medley::Context context(std::vector<std::string>{"mpi"});
  medley::Comm world = context.world();
  medley::Comm survivors = world.subset({0, 2});
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
