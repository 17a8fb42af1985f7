// Traces of Kineto, NCCL's log and Chakra have full tensor sizes, whatever the tool's convention; damaged ones are
// rejected with the place.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <filesystem>
#include <fstream>
#include <medley/error.hpp>
#include <sstream>

#include "trace/export.hpp"
#include "trace/import.hpp"
#include "trace/import_parts.hpp"
#include "trace/imported.hpp"

namespace medley::trace {
namespace {

using test::events_of;
using test::expect_flight;
using test::flight;
using test::refusal;
using ::testing::HasSubstr;

TEST(Import, kineto) {
  const char* text =
      R"({"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": 1, "world_size": 8},
   "traceEvents": [
    {"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "ts": 1000.0, "dur": 5, "args": {"External id": 7, "Collective name":
     "_reduce_scatter_base", "dtype": "BFloat16", "In msg nelems": 800, "Out msg nelems": 100, "Group size": 8,
     "Process Group Name": "0", "Process Group Description": "default_pg", "Process Group Ranks": "[0, 1, 2, ...]", "Seq": 3}},
    {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL", "ts": 1010.0, "dur": 40, "args": {"External id": 7}},
    {"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "ts": 1100.0, "dur": 5, "args": {"Collective name": "wait",
     "dtype": "Byte", "In msg nelems": 0, "Out msg nelems": 0, "Group size": 8}},
    {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 900.0, "dur": 5}]})";
  Trace trace;
  ByteStream in(text, "t.json");
  import_kineto(in, trace);
  const auto events = events_of(trace);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].op, Op::reduce_scatter);
  EXPECT_EQ(events[0].bytes, 1600);
  EXPECT_EQ(events[0].sequence, 3u);
  EXPECT_DOUBLE_EQ(events[0].completed - events[0].started, 40'000);
  EXPECT_FALSE(events[0].call_only);
  EXPECT_FALSE(trace.waits_known) << "a profile does not tell when the program waited";
  EXPECT_EQ(trace.groups[events[0].group].ranks, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(trace.ranks[0].rank, 1);
  EXPECT_EQ(trace.world, 8);
}

/// An issue without arguments, as PyTorch wrote it before 2.1: the annotation gives the operation, the launch
/// links the kernel to it, and the profiler's steps are used.
TEST(Import, kineto_without_arguments) {
  const char* text = R"json({"traceEvents": [
    {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "ts": 90, "dur": 60, "tid": 1},
    {"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "ts": 99, "dur": 9, "tid": 1, "args": {"External id": 4}},
    {"ph": "X", "cat": "user_annotation", "name": "nccl:all_reduce", "ts": 100, "dur": 5, "tid": 1, "args": {"External id": 5}},
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 102, "dur": 1, "tid": 1, "args": {"External id": 77, "correlation": 77}},
    {"ph": "X", "cat": "kernel", "name": "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", "ts": 200, "dur": 30, "tid": 9, "args": {"External id": 77}},
    {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#2", "ts": 150, "dur": 60, "tid": 1},
    {"ph": "X", "cat": "user_annotation", "name": "nccl:all_to_all", "ts": 160, "dur": 5, "tid": 1, "args": {"External id": 8}},
    {"ph": "X", "cat": "kernel", "name": "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t", "ts": 10, "dur": 3, "tid": 9, "args": {"External id": 1}},
    {"ph": "X", "cat": "kernel", "name": "ncclKernel_Broadcast_RING_LL_Sum_int8_t", "ts": 20, "dur": 3, "tid": 9, "args": {"External id": 2}}]})json";
  Trace trace;
  ByteStream in(text, "t.json");
  import_kineto(in, trace);
  const auto events = events_of(trace);
  ASSERT_EQ(events.size(), 3u) << "the issue is not counted beside its annotation, nor the kernel beside its issue";
  EXPECT_EQ(events[0].op, Op::broadcast);
  EXPECT_EQ(events[1].op, Op::all_reduce);
  EXPECT_DOUBLE_EQ(events[1].duration(), 30'000) << "the kernel's time";
  EXPECT_TRUE(events[1].unknown.has(Field::bytes) && events[1].unknown.has(Field::group));
  EXPECT_EQ(events[2].op, Op::all_to_all);
  EXPECT_FALSE(events[0].call_only || events[1].call_only);
  EXPECT_TRUE(events[2].call_only) << "the 5 us of its call are not those of the transfer";
  EXPECT_THAT(trace.ranks[0].remarks,
              ::testing::Contains(HasSubstr("1 of 3 operations have no kernel in the profile")));
  EXPECT_EQ(trace.ranks[0].marked_steps.size(), 2u);
  EXPECT_THAT(trace.ranks[0].remarks, ::testing::Contains(HasSubstr("1 nccl kernels are left out")));
  EXPECT_THAT(trace.ranks[0].remarks, ::testing::Contains(HasSubstr("3 of 3 operations have no arguments")));
}

TEST(Import, kineto_sizes_that_are_absent_or_absurd) {
  const auto read = [](const std::string& sizes) {
    const std::string text =
        R"json({"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "ts": 1, "dur": 1, "tid": 1,
      "args": {"Collective name": "allreduce", "dtype": "Float", "Group size": 2)json" +
        sizes + "}}]}";
    Trace trace;
    ByteStream in(text, "t.json");
    import_kineto(in, trace);
    return events_of(trace).at(0);
  };
  EXPECT_TRUE(read("").unknown.has(Field::bytes)) << "not 0 B";
  EXPECT_FALSE(read(R"(, "In msg nelems": 4, "Out msg nelems": 4)").unknown.has(Field::bytes));
  EXPECT_THAT(refusal([&] { read(R"(, "In msg nelems": 99999999999999999999)"); }),
              ::testing::HasSubstr("t.json: traceEvents[0]: a tensor cannot have"));
}

TEST(Import, kineto_refuses_what_holds_no_communication_and_what_is_not_json) {
  const auto refused = [](std::string_view text) {
    return refusal([&] {
      Trace trace;
      ByteStream in(text, "t.json");
      import_kineto(in, trace);
    });
  };
  EXPECT_THAT(refused(R"({"traceEvents": [{"name": "aten::mm", "ts": 1}]})"), HasSubstr("none of its 1 events"));
  EXPECT_THAT(refused(R"({"traceEvents": [{"name": )"), HasSubstr("is not JSON from byte"));
  EXPECT_THAT(refused(R"({"deviceProperties": []})"), HasSubstr("it has no list \"traceEvents\""));
}

TEST(Import, nccl_log) {
  std::string log = "some text\n";
  for (int rank = 0; rank < 2; ++rank) {
    const std::string head = fmt::format("node1:{}:200 [{}] NCCL INFO ", 100 + rank, rank);
    log +=
        head +
        fmt::format(
            "ncclCommInitRank comm 0x{}a rank {} nranks 2 cudaDev {} nvmlDev {} busId 1000 commId 0xabc - Init COMPLETE\n",
            rank + 1, rank, rank, rank);
    log +=
        head +
        fmt::format(
            "AllReduce: opCount 0 sendbuff 0x7f recvbuff 0x7f count 1000 datatype 9 op 0 root 0 comm 0x{}a [nranks=2] stream 0x5\n",
            rank + 1);
    log +=
        head +
        fmt::format(
            "AllGather: opCount 1 sendbuff 0x7f recvbuff 0x7f count 16 datatype 7 op 0 root 0 comm 0x{}a [nranks=2] stream 0x5\n",
            rank + 1);
    log +=
        head +
        fmt::format(
            "Broadcast: opCount 2 sendbuff 0x7f recvbuff 0x7f count 8 datatype 7 op 0 root 1 comm 0x{}a [nranks=2] stream 0x5\n",
            rank + 1);
  }
  Trace trace;
  ByteStream in(log, "nccl.log");
  import_nccl_log(in, trace);
  ASSERT_EQ(trace.ranks.size(), 2u);
  EXPECT_FALSE(trace.waits_known);
  EXPECT_EQ(trace.world, 2);
  const auto events = events_of(trace);
  ASSERT_EQ(events.size(), 6u);
  EXPECT_EQ(events[0].bytes, 2000);
  EXPECT_EQ(events[0].dtype, DType::bf16);
  EXPECT_EQ(events[0].reduce, ReduceOp::sum);
  EXPECT_EQ(events[1].bytes, 128) << "of both ranks";
  EXPECT_EQ(events[2].peer, 1);
  EXPECT_EQ(trace.groups[events[0].group].ranks, (std::vector<int>{0, 1}));
  Trace other;
  ByteStream bad("node1:1:2 [0] NCCL INFO AllReduce: opCount 0 count x datatype 9 op 0 root 0 comm 0x1 [nranks=2]\n",
                 "nccl.log");
  EXPECT_THAT(refusal([&] { import_nccl_log(bad, other); }), HasSubstr("nccl.log: line 1"));
}

TEST(Import, chakra_reads_what_medley_writes) {
  Trace trace;
  import_flight_json(flight, "rank0.json", trace);
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / fmt::format("medley-chakra-{}", getpid());
  write_chakra(trace, folder);
  Trace again;
  import_file(folder / "medley.0.et", again);
  const auto written = events_of(trace), read = events_of(again);
  std::vector<std::pair<Op, std::int64_t>> a, b;
  for (const Event& e : written) a.emplace_back(e.op, e.bytes);
  for (const Event& e : read) b.emplace_back(e.op, e.bytes);
  EXPECT_THAT(b, ::testing::UnorderedElementsAreArray(a));
  EXPECT_FALSE(again.waits_known);
  std::filesystem::remove_all(folder);
  const std::string cut(
      "\x07\x0a\x05"
      "0.0.4"
      "\x30\x08",
      10);
  ByteStream damaged(cut, "cut.et");
  Trace none;
  EXPECT_THAT(refusal([&] { import_chakra(damaged, none); }), HasSubstr("is cut off"));
}

/// Compressed files are decompressed on the fly; damaged ones are rejected with the byte.
TEST(Import, gzip_and_zstd) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / fmt::format("medley-packed-{}", getpid());
  std::filesystem::create_directories(folder);
  const std::string text = flight;
  const std::filesystem::path gz = folder / "rank0.json.gz", zst = folder / "rank0.json.zst";
  gzFile file = gzopen(gz.c_str(), "wb");
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 3));
  std::ofstream(zst, std::ios::binary) << packed;
  for (const auto& path : {gz, zst}) {
    Trace trace;
    import_file(path, trace);
    expect_flight(trace);
    std::filesystem::resize_file(path, std::filesystem::file_size(path) - 8);
    Trace cut;
    EXPECT_THAT(refusal([&] { import_file(path, cut); }), HasSubstr("is cut off")) << path;
  }
  std::filesystem::remove_all(folder);
}

TEST(Import, spellings) {
  EXPECT_EQ(foreign_op("nccl:reduce_scatter_tensor_coalesced"), Op::reduce_scatter);
  EXPECT_EQ(foreign_op("ncclAllReduce"), Op::all_reduce);
  EXPECT_EQ(foreign_op("nccl:all_to_allv"), Op::all_to_allv);
  EXPECT_EQ(foreign_op("irecv"), Op::recv);
  EXPECT_EQ(foreign_op("wait"), std::nullopt);
  EXPECT_EQ(foreign_dtype("c10::Half"), DType::f16);
  EXPECT_EQ(foreign_dtype("torch.bfloat16"), DType::bf16);
}

}  // namespace
}  // namespace medley::trace
