// A program that uses MPI itself beside Medley: what the mpi backend must not touch, and what it must refuse. Linked
// with one MPI and started by its launcher; its argument selects how it initialises MPI.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <limits>
#include <medley/medley.hpp>
#include <span>
#include <string>
#include <vector>

namespace {

int failures = 0;

void expect(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "expected: %s\n", what);
  ++failures;
}

float sum_of_ones(medley::Comm& comm) {
  std::vector<float> ones(1000, 1.0f);
  comm.all_reduce(ones, medley::sum);
  return ones.back();
}

// A message that does not fit is an error of the receiver, which writes nothing beyond its buffer; the process and the
// comm continue. Tested below MPI's eager limit and far above it, where Open MPI reads directly from the sender.
void send_too_much(medley::Comm& world, std::size_t count) {
  const int next = (world.rank() + 1) % world.size(), before = (world.rank() + world.size() - 1) % world.size();
  std::vector<float> large(count, 1.0f), memory(count, 5.0f);
  medley::Work sent = world.send(large, next, {.async = true, .tag = 5});
  try {
    world.recv(std::span(memory.data(), 10), before, {.tag = 5});
    expect(false, "an error for a message that is too long");
  } catch (const medley::Error& error) {
    expect(error.kind() == medley::ErrorKind::mismatch, "kind mismatch");
    expect(error.context().ranks == std::vector<int>{before}, "the sender's rank in the error");
  }
  sent.wait();
  expect(std::all_of(memory.begin() + 10, memory.end(), [](float f) { return f == 5.0f; }), "nothing written beyond");
  expect(sum_of_ones(world) == static_cast<float>(world.size()), "an all_reduce after the error");
}

void use_medley() {
  medley::Context context(std::vector<std::string>{"mpi"});
  medley::Comm world = context.world();
  expect(sum_of_ones(world) == static_cast<float>(world.size()), "an all_reduce over mpi");

  for (const std::size_t count : {500, 100'000}) send_too_much(world, count);

  // MPICH's largest tag is 2^28 - 1; Open MPI has no bound below int's.
  int* largest = nullptr;
  int known = 0;
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &largest, &known);
  std::vector<float> small(10);
  std::int32_t out = 7, in = 0;
  world.sendrecv(medley::ConstBuffer(&out, 1, medley::DType::i32), world.rank(),
                 medley::Buffer(&in, 1, medley::DType::i32), world.rank(), {.tag = *largest});
  expect(in == 7, "the largest tag works");
  if (*largest < std::numeric_limits<int>::max()) {
    try {
      world.send(small, world.rank(), {.tag = *largest + 1});
      expect(false, "an error for a tag beyond MPI's largest");
    } catch (const medley::Error& error) {
      expect(error.kind() == medley::ErrorKind::invalid, "kind invalid");
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string how = argc > 1 ? argv[1] : "";
  int level = -1;
  if (how == "single") MPI_Init(&argc, &argv);
  if (how == "funneled") MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  if (how == "serialized") MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);
  if (how == "multiple") MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  use_medley();
  int initialised = 0, finalised = 1;
  MPI_Initialized(&initialised);
  MPI_Finalized(&finalised);
  expect(initialised && !finalised, "MPI is still there after the context");
  int rank = 0, size = 0, sum = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  expect(sum == size * (size - 1) / 2, "the application's own MPI calls");
  use_medley();  // a second context in the same process
  if (how != "medley") MPI_Finalize();
  return failures == 0 ? 0 : 1;
}
