// The profiler plugin under a mock of NCCL: what it writes is read as a trace of the job, with the fields
// that NCCL's interface carries and no others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <functional>

#include "nccl_profiler/mock_nccl.hpp"
#include "trace/problems.hpp"
#include "trace/trace.hpp"

namespace medley::nccl_profiler::test {
namespace {

namespace fs = std::filesystem;
using trace::Event;
using trace::Field;

/// A folder for the trace of a job, removed at the end.
struct Folder {
  Folder() {
    std::string name = fs::temp_directory_path() / "medley-plugin-XXXXXX";
    path = mkdtemp(name.data());
  }
  ~Folder() { fs::remove_all(path); }
  fs::path path;
};

/// Runs `body` in a process per rank, as a launcher would start it.
void run_ranks(const fs::path& folder, int ranks, const std::function<void(MockNccl&, int)>& body) {
  void* shared = mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  auto* arrived = new (shared) std::atomic<int>(0);
  std::vector<pid_t> children;
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t child = fork();
    if (child == 0) {
      setenv("MEDLEY_TRACE", folder.c_str(), 1);
      setenv("RANK", std::to_string(rank).c_str(), 1);
      setenv("WORLD_SIZE", std::to_string(ranks).c_str(), 1);
      try {
        MockNccl nccl(NCCL_PROFILER_PLUGIN);
        int comms = 0;
        nccl.meet = [&] {
          ++comms;
          for (arrived->fetch_add(1); arrived->load() < comms * ranks;) sched_yield();
        };
        body(nccl, rank);
        std::exit(0);  // as a program ends: the recorder closes its file
      } catch (const std::exception& error) {
        std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
        std::_Exit(1);
      }
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  munmap(shared, sizeof(std::atomic<int>));
}

std::vector<Event> events_of(const trace::Trace& t, int rank) {
  std::vector<Event> out;
  t.rank(rank).for_each([&](const Event& event) { out.push_back(event); });
  return out;
}

TEST(NcclProfiler, sizes_types_groups_and_kernel_times_of_a_job) {
  for (const int version : {6, 5, 4}) {
    const Folder folder;
    run_ranks(folder.path, 4, [version](MockNccl& nccl, int rank) {
      auto world = nccl.comm(0xabc, "world", 4, rank, version);
      auto pair = nccl.comm(rank < 2 ? 0x111 : 0x222, "", 2, rank % 2, version);
      ASSERT_NE(world.mask, 0);
      nccl.ran(world, nccl.collective(world, "AllReduce", 1000, "ncclBfloat16", 2), 5000, 25000);
      nccl.ran(world, nccl.collective(world, "AllGather", 100, "ncclFloat32", 4), 30000, 31000);
      nccl.ran(world, nccl.collective(world, "ReduceScatter", 100, "ncclFloat16", 2), 30000, 31000);
      nccl.ran(pair, nccl.collective(pair, "Broadcast", 64, "ncclFloat32", 4, 1), 30000, 31000);
      nccl.ran(world, nccl.collective(world, "AlltoAll", 10, "ncclFloat32", 4), 30000, 31000);
      nccl.close(pair);
      nccl.close(world);
    });
    const trace::Trace t = trace::open_trace(folder.path);
    EXPECT_EQ(t.world, 4);
    ASSERT_EQ(t.ranks.size(), 4u);
    for (int rank = 0; rank < 4; ++rank) {
      const auto events = events_of(t, rank);
      ASSERT_EQ(events.size(), 5u);
      EXPECT_EQ(events[0].op, Op::all_reduce);
      EXPECT_EQ(events[0].dtype, DType::bf16);
      EXPECT_EQ(events[0].bytes, 2000);
      EXPECT_EQ(events[0].state, trace::State::complete);
      EXPECT_TRUE(events[0].unknown.has(Field::reduce) && events[0].unknown.has(Field::phase));
      EXPECT_TRUE(events[0].on_device);
      EXPECT_LE(events[0].duration(), 20000.0 * 1.001);
      EXPECT_EQ(events[1].op, Op::all_gather);
      EXPECT_EQ(events[1].bytes, 1600) << "of all ranks";
      EXPECT_EQ(events[1].unknown.has(Field::dtype), version == 4) << "version 4 does not say what the program called";
      EXPECT_EQ(events[2].op, Op::reduce_scatter);
      EXPECT_EQ(events[2].bytes, 800);
      EXPECT_EQ(events[3].op, Op::broadcast);
      EXPECT_EQ(events[3].bytes, 256);
      const auto& pair = t.groups[events[3].group];
      EXPECT_EQ(pair.ranks, (rank < 2 ? std::vector<int>{0, 1} : std::vector<int>{2, 3})) << "joined over the files";
      EXPECT_EQ(events[3].peer, rank < 2 ? 1 : 3);
      EXPECT_EQ(events[4].op, Op::all_to_all);
      EXPECT_EQ(events[4].bytes, 160);
    }
    EXPECT_TRUE(trace::find_problems(t).list.empty());
  }
}

TEST(NcclProfiler, a_rank_that_did_not_call_is_named) {
  const Folder folder;
  run_ranks(folder.path, 2, [](MockNccl& nccl, int rank) {
    auto world = nccl.comm(7, "", 2, rank);
    nccl.ran(world, nccl.collective(world, "AllReduce", 8, "ncclFloat32", 4), 10, 20);
    if (rank == 0) nccl.collective(world, "AllReduce", 8, "ncclFloat32", 4);  // launched, and waits in its kernel
    std::_Exit(0);
  });
  const trace::Trace t = trace::open_trace(folder.path);
  const auto problems = trace::find_problems(t);
  ASSERT_EQ(problems.list.size(), 1u);
  EXPECT_THAT(problems.list[0].sentence, ::testing::HasSubstr("rank 1 did not get there"));
}

TEST(NcclProfiler, collectives_of_the_copy_engines_are_recorded_without_an_end) {
  const Folder folder;
  run_ranks(folder.path, 2, [](MockNccl& nccl, int rank) {
    auto older = nccl.comm(5, "", 2, rank, 5);
    ASSERT_FALSE(nccl.copy_engine(older, "AllGather", 100, "ncclFloat32"));
    auto world = nccl.comm(7, "", 2, rank, 6);
    ASSERT_TRUE(nccl.copy_engine(world, "AllGather", 100, "ncclFloat32"));
    ASSERT_TRUE(nccl.copy_engine(world, "AlltoAll", 10, "ncclBfloat16"));
    nccl.ran(world, nccl.collective(world, "AllReduce", 8, "ncclFloat32", 4), 10, 20);
    nccl.close(world);
    nccl.close(older);
  });
  const trace::Trace t = trace::open_trace(folder.path);
  for (int rank = 0; rank < 2; ++rank) {
    const auto events = events_of(t, rank);
    ASSERT_EQ(events.size(), 3u);
    EXPECT_EQ(events[0].op, Op::all_gather);
    EXPECT_EQ(events[0].bytes, 800);
    EXPECT_EQ(events[0].dtype, DType::f32);
    EXPECT_EQ(events[0].sequence, 1u);
    EXPECT_EQ(events[1].op, Op::all_to_all);
    EXPECT_EQ(events[1].bytes, 40);
    EXPECT_EQ(t.names[events[1].algorithm], "copy engine/UC");
    EXPECT_EQ(events[2].sequence, 3u) << "in the order of the calls";
    for (int i : {0, 1}) {
      EXPECT_TRUE(events[static_cast<std::size_t>(i)].call_only);
      EXPECT_FALSE(events[static_cast<std::size_t>(i)].on_device);
      EXPECT_EQ(events[static_cast<std::size_t>(i)].state, trace::State::complete);
    }
    EXPECT_FALSE(events[2].call_only);
  }
  EXPECT_TRUE(trace::find_problems(t).list.empty());
}

TEST(NcclProfiler, messages_have_their_peers) {
  const Folder folder;
  run_ranks(folder.path, 2, [](MockNccl& nccl, int rank) {
    auto world = nccl.comm(7, "", 2, rank);
    nccl.ran(world, nccl.message(world, rank == 0 ? "Send" : "Recv", 16, "ncclFloat32", 1 - rank), 10, 20);
    nccl.close(world);
  });
  const trace::Trace t = trace::open_trace(folder.path);
  EXPECT_EQ(events_of(t, 0)[0].op, Op::send);
  EXPECT_EQ(events_of(t, 0)[0].peer, 1);
  EXPECT_EQ(events_of(t, 0)[0].bytes, 64);
  EXPECT_EQ(events_of(t, 1)[0].op, Op::recv);
  EXPECT_EQ(events_of(t, 1)[0].peer, 0);
}

}  // namespace
}  // namespace medley::nccl_profiler::test
