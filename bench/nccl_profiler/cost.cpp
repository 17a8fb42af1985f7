// The plugin's overhead: ns per collective, from NCCL's first call to its last. Run by hand:
//   bench_nccl_profiler [operations]
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "nccl_profiler/mock_nccl.hpp"

int main(int argc, char** argv) {
  using namespace medley::nccl_profiler::test;
  const long operations = argc > 1 ? std::atol(argv[1]) : 200'000;
  MockNccl nccl(NCCL_PROFILER_PLUGIN);
  for (const int version : {4, 5, 6}) {
    auto comm = nccl.comm(1, "", 1, 0, version);
    const auto begin = std::chrono::steady_clock::now();
    for (long i = 0; i < operations; ++i)
      nccl.ran(comm, nccl.collective(comm, "AllReduce", 1024, "ncclFloat32", 4, 0, 2), 1, 2);
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    std::printf("version %d: %.0f ns per operation of two channels\n", version,
                took.count() / static_cast<double>(operations));
    nccl.close(comm);
  }
}
