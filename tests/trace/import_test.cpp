// Imported traces have full tensor sizes, whatever the tool's convention; damaged ones are rejected with the
// place.
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
#include "trace/pickle.hpp"

namespace medley::trace {
namespace {

using ::testing::HasSubstr;

std::vector<Event> events_of(const Trace& trace) {
  std::vector<Event> out;
  for (const RankTrace& rank : trace.ranks) rank.for_each([&](const Event& event) { out.push_back(event); });
  return out;
}

void read_deepspeed(std::string_view text, Trace& trace) {
  ByteStream in(text, "log");
  import_deepspeed(in, trace);
}

template <typename Action>
std::string refusal(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::invalid);
    return error.what();
  }
  return "accepted";
}

constexpr const char* deepspeed_table = R"(some line of the log
Comm. Op            Message Size        Count               Total Latency(ms)   Avg Latency(ms)     tput_avg (Gbps)     busbw_avg (Gbps)
broadcast
                    2.0 KB              146                 11.12               0.08                0.43                0.41
                    98.25 MB            1                   8317.12             8317.12             0.20                0.19
reduce_scatter_tensor
                    678.86 MB           40                  602.29              9.69                1468.06             1376.31
all_gather_into_tensor
                    0B                  2                   0.5                 0.25                0.00                0.00
                    1.0 MB              2                   0.5                 0.25                268.44              251.66
[2024-01-01 00:00:00] [INFO] the log goes on
)";

TEST(Import, deepspeed_table) {
  Trace trace;
  read_deepspeed(deepspeed_table, trace);
  const auto events = events_of(trace);
  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(events[4].bytes, 16 << 20);  // the shard of 1 MB, of 16 ranks by 251.66 / 268.44 = 15/16
  EXPECT_EQ(events[0].op, Op::broadcast);
  EXPECT_EQ(events[0].bytes, 2048);
  EXPECT_EQ(events[0].count, 146);
  EXPECT_NEAR(events[0].duration(), 11.12e6 / 146, 1);
  EXPECT_EQ(events[1].bytes, 103022592);
  EXPECT_EQ(events[2].op, Op::reduce_scatter);  // its size is already the whole input
  EXPECT_EQ(events[2].count, 40);
  EXPECT_EQ(events[3].bytes, 0);
  EXPECT_EQ(trace.format, "deepspeed comms logger");
  EXPECT_TRUE(trace.waits_known) << "the logger waits for the device after every operation";
}

TEST(Import, deepspeed_refuses_by_line) {
  const std::string bad =
      std::string("Comm. Op  Message Size Count Total Latency(ms)\nall_reduce\n   12 XB 3 1.0 1.0 1 1\n");
  Trace trace;
  EXPECT_EQ(refusal([&] { read_deepspeed(bad, trace); }),
            "log: line 3: expected a message size, a count and latencies");
}

/// The lines of a table are printed one by one, so that other ranks and libraries print between them.
TEST(Import, deepspeed_table_with_other_output_in_it) {
  std::string mixed;
  std::size_t lines = 0;
  std::istringstream table(deepspeed_table);
  for (std::string line; std::getline(table, line);) {
    mixed += line + "\n";
    if (++lines > 2) mixed += "[W1118 reducer.cpp:1234] Warning: find_unused_parameters=True\n    warnings.warn(message)\n";
  }
  mixed += "done\n  1 2 3\n";
  Trace plain, trace;
  read_deepspeed(deepspeed_table, plain);
  read_deepspeed(mixed, trace);
  ASSERT_EQ(events_of(trace).size(), events_of(plain).size());
  for (std::size_t i = 0; i < events_of(plain).size(); ++i) {
    EXPECT_EQ(events_of(trace)[i].op, events_of(plain)[i].op);
    EXPECT_EQ(events_of(trace)[i].bytes, events_of(plain)[i].bytes);
    EXPECT_EQ(events_of(trace)[i].count, events_of(plain)[i].count);
  }
  EXPECT_EQ(refusal([&] { read_deepspeed("Comm. Op  Message Size Count Total Latency(ms)\nteleport\n   1.0 KB 3 1.0 1.0 1 1\n", trace); }),
            "log: line 3: \"teleport\" is not an operation that the comms logger has");
}

constexpr const char* flight =
    R"({"version": "2.9", "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2, 3]"}},
 "entries": [
  {"record_id": 0, "pg_id": 0, "process_group": ["0", "default_pg"], "collective_seq_id": 1, "p2p_seq_id": 0, "op_id": 1,
   "profiling_name": "nccl:all_reduce", "time_created_ns": 1724779239936775119, "input_sizes": [[3, 4]],
   "input_dtypes": ["Float"], "output_sizes": [[3, 4]], "output_dtypes": ["Float"], "state": "completed",
   "time_discovered_started_ns": 1724779239936776119, "time_discovered_completed_ns": 1724779239936976119, "is_p2p": false},
  {"pg_id": 0, "process_group": ["0", "default_pg"], "collective_seq_id": 2, "profiling_name": "nccl:_all_gather_base",
   "time_created_ns": 1724779239937775119, "input_sizes": [[10]], "input_dtypes": ["BFloat16"], "output_sizes": [[40]],
   "output_dtypes": ["BFloat16"], "state": "scheduled", "time_discovered_started_ns": null,
   "time_discovered_completed_ns": null, "is_p2p": false},
  {"pg_id": 0, "process_group": ["0", "default_pg"], "p2p_seq_id": 1, "collective_seq_id": 2, "profiling_name": "nccl:send 0->1",
   "time_created_ns": 1724779239938775119, "input_sizes": [[8]], "input_dtypes": ["Half"], "output_sizes": [[8]],
   "output_dtypes": ["Half"], "state": "started", "is_p2p": true}]})";

void expect_flight(const Trace& trace) {
  const auto events = events_of(trace);
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].op, Op::all_reduce);
  EXPECT_EQ(events[0].bytes, 48);
  EXPECT_EQ(events[0].state, State::complete);
  EXPECT_EQ(trace.groups[events[0].group].ranks, (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(events[1].op, Op::all_gather);
  EXPECT_EQ(events[1].bytes, 80);
  EXPECT_EQ(events[1].state, State::issued);
  EXPECT_NEAR(events[1].issued, 1e6, 1000);
  EXPECT_EQ(events[2].op, Op::send);
  EXPECT_EQ(events[2].bytes, 16);
  EXPECT_EQ(events[2].peer, 1);
  EXPECT_FALSE(events[2].matched);
}

TEST(Import, flight_recorder_json) {
  Trace trace;
  import_flight_json(flight, "nccl_trace_rank_3.json", trace);
  EXPECT_EQ(trace.ranks.at(0).rank, 3);
  expect_flight(trace);
  EXPECT_FALSE(trace.waits_known);
}

TEST(Import, flight_recorder_json_with_stack_frames) {
  EXPECT_EQ(parse_import(R"([{"frames": [{"line": 1}], "a": {"frames": 2, "b": "frames"}}])", "f", "frames"),
            nlohmann::json::parse(R"([{"a": {"b": "frames"}}])"));
  std::string text = flight;
  text.replace(text.find("\"record_id\""), 11, R"("frames": [{"name": "all_reduce", "filename": "a.py", "line": 3}], "record_id")");
  Trace trace;
  import_flight_json(text, "f", trace);
  expect_flight(trace);
  EXPECT_THAT(refusal([&] { import_flight_json(R"({"entries": [{"frames": [1,}]})", "f", trace); }), HasSubstr("is not JSON from byte 28"));
}

TEST(Import, flight_recorder_refuses_by_entry) {
  std::string bad = flight;
  bad.replace(bad.find("[[10]]"), 6, "[[-1]]");
  Trace trace;
  EXPECT_EQ(refusal([&] { import_flight_json(bad, "f", trace); }),
            "f: entries[1]: input_sizes: -1 is not an extent");
  EXPECT_THAT(refusal([&] { import_flight_json("{\"entries\": [", "f", trace); }),
              HasSubstr("is not JSON from byte"));
}

TEST(Import, flight_recorder_fields_of_the_wrong_type_do_not_end_the_program) {
  for (const char* flag : {"null", "\"yes\"", "[]", "{}", "2.5"}) {
    std::string odd = flight;
    odd.replace(odd.find("\"is_p2p\": true"), 14, fmt::format("\"is_p2p\": {}", flag));
    Trace trace;
    import_flight_json(odd, "f", trace);
    EXPECT_TRUE(trace.ranks.at(0).events != nullptr) << flag;
  }
  std::string number = flight;
  number.replace(number.find("\"is_p2p\": true"), 14, "\"is_p2p\": 1");
  Trace trace;
  import_flight_json(number, "nccl_trace_rank_3.json", trace);
  expect_flight(trace);
}

/// What Python's pickle.dumps({"a": [1, -2, 2.5, True, None], "b": (300, 5_000_000_000, "x")}, protocol)
/// writes.
std::string hex(std::string_view digits) {
  std::string out;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2)
    out += static_cast<char>(std::stoi(std::string(digits.substr(i, 2)), nullptr, 16));
  return out;
}

TEST(Pickle, plain_values_of_protocols_2_and_4) {
  const nlohmann::json wanted = {{"a", {1, -2, 2.5, true, nullptr}}, {"b", {300, 5'000'000'000, "x"}}};
  EXPECT_EQ(read_pickle(hex("80027d71002858010000006171015d7102284b014afeffffff474004000000000000884e65580100"
                            "00006271034d2c018a05"
                            "00f2052a015801000000787104877105752e"),
                        "f"),
            wanted);
  EXPECT_EQ(read_pickle(hex("80049533000000000000007d94288c0161945d94284b014afeffffff474004000000000000884e65"
                            "8c0162944d2c018a0500"
                            "f2052a018c0178948794752e"),
                        "f"),
            wanted);
  EXPECT_EQ(read_pickle(hex("80049533000000000000007d94288c0161945d94284b014afeffffff474004000000000000884e65"
                            "8c0162944d2c018a0500"
                            "f2052a018c0178948794752e"),
                        "f", "b"),
            (nlohmann::json{{"a", wanted["a"]}}))
      << "without what is left out";
}

TEST(Pickle, torchs_typed_lists_are_lists) {
  // torch::jit::Pickler: GLOBAL build_intlist, MARK, list, TUPLE, REDUCE
  const std::string bytes =
      std::string("\x80\x02", 2) + "ctorch.jit._pickle\nbuild_intlist\n(](K\x03K\x04" + "etR.";
  EXPECT_EQ(read_pickle(bytes, "f"), (nlohmann::json{3, 4}));
}

TEST(Pickle, nothing_is_run) {
  const std::string bytes = std::string("\x80\x02", 2) + "cos\nsystem\n(X\x02\x00\x00\x00ls" + "tR.";
  EXPECT_THAT(refusal([&] { read_pickle(bytes, "f"); }), HasSubstr("pickle, byte 2: it calls os.system"));
}

TEST(Pickle, lists_that_contain_themselves_or_explode_are_refused) {
  const std::string loop = std::string("\x80\x02]q\x00h\x00", 7) + "a.";
  EXPECT_THAT(refusal([&] { read_pickle(loop, "f"); }), HasSubstr("contains itself"));
  std::string laughs("\x80\x02]q\x00", 5);  // each list contains the previous one ten times
  for (char level = 1; level < 20; ++level) {
    laughs += "](";
    for (int i = 0; i < 10; ++i) laughs += std::string("h") + static_cast<char>(level - 1);
    laughs += std::string("eq") + level;
  }
  EXPECT_THAT(refusal([&] { read_pickle(laughs + ".", "f"); }), HasSubstr("too large"));
}

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
  EXPECT_THAT(trace.ranks[0].remarks, ::testing::Contains(HasSubstr("1 of 3 operations have no kernel in the profile")));
  EXPECT_EQ(trace.ranks[0].marked_steps.size(), 2u);
  EXPECT_THAT(trace.ranks[0].remarks, ::testing::Contains(HasSubstr("1 nccl kernels are left out")));
  EXPECT_THAT(trace.ranks[0].remarks, ::testing::Contains(HasSubstr("3 of 3 operations have no arguments")));
}

TEST(Import, kineto_sizes_that_are_absent_or_absurd) {
  const auto read = [](const std::string& sizes) {
    const std::string text = R"json({"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "ts": 1, "dur": 1, "tid": 1,
      "args": {"Collective name": "allreduce", "dtype": "Float", "Group size": 2)json" + sizes + "}}]}";
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

TEST(Import, deepspeed_verbose_lines_labels_and_stragglers) {
  Trace verbose;
  read_deepspeed("[rank1]: [2024-05-01 10:00:00,123] [INFO] [logging.py:96:log_dist] [Rank 1] comm op: all_reduce | time (ms): 0.50 | "
                 "msg size: 4.0 KB | algbw (Gbps): 0.00 | busbw (Gbps): 0.00 \n"
                 "[rank1]: [2024-05-01 10:00:00,124] [INFO] [logging.py:96:log_dist] [Rank 1] comm op: all_gather_into_tensor | "
                 "time (ms): 1.00 | msg size: 2.5 MB | algbw (Gbps): 0.00 | busbw (Gbps): 0.00\n",
                 verbose);
  auto events = events_of(verbose);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(verbose.ranks[0].rank, 1);
  EXPECT_EQ(events[0].bytes, 4096);
  EXPECT_DOUBLE_EQ(events[0].duration(), 5e5);
  EXPECT_EQ(events[1].op, Op::all_gather);
  EXPECT_FALSE(events[0].unknown.has(Field::order));

  std::string labelled, text = deepspeed_table;
  text += "_______________________________\nBreakdown with straggler effect\n-------------------------------\n"
          "Comm. Op            Message Size        Count               Total comm lat(ms)  Total straggler(ms) Avg comm lat(ms)    "
          "Avg straggler(ms)\nbroadcast\n                    2.0 KB              146                 11.12               1.0                 0.08                0.01\n";
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    labelled += "[rank0]: " + text.substr(at, end - at) + "\n";
    at = end == std::string::npos ? text.size() : end + 1;
  }
  for (const auto& [prefix, rank] : {std::pair("worker-0: ", 0), std::pair(" 3: ", 3), std::pair("[default1]:", 1)}) {
    std::string prefixed = labelled;
    for (std::size_t at = 0; (at = prefixed.find("[rank0]: ", at)) != std::string::npos;) prefixed.replace(at, 9, prefix);
    Trace trace;
    read_deepspeed("worker-1: other output\n" + prefixed, trace);
    EXPECT_EQ(events_of(trace).size(), 5u) << prefix;
    EXPECT_EQ(trace.ranks[0].rank, rank) << prefix;
  }
  Trace plain, tables;
  read_deepspeed(deepspeed_table, plain);
  read_deepspeed(labelled, tables);
  ASSERT_EQ(events_of(tables).size(), events_of(plain).size()) << "the second table repeats the first";
  for (std::size_t i = 0; i < events_of(plain).size(); ++i) EXPECT_EQ(events_of(tables)[i].bytes, events_of(plain)[i].bytes);
}

TEST(Import, nccl_log) {
  std::string log = "some text\n";
  for (int rank = 0; rank < 2; ++rank) {
    const std::string head = fmt::format("node1:{}:200 [{}] NCCL INFO ", 100 + rank, rank);
    log += head + fmt::format("ncclCommInitRank comm 0x{}a rank {} nranks 2 cudaDev {} nvmlDev {} busId 1000 commId 0xabc - Init COMPLETE\n", rank + 1, rank, rank, rank);
    log += head + fmt::format("AllReduce: opCount 0 sendbuff 0x7f recvbuff 0x7f count 1000 datatype 9 op 0 root 0 comm 0x{}a [nranks=2] stream 0x5\n", rank + 1);
    log += head + fmt::format("AllGather: opCount 1 sendbuff 0x7f recvbuff 0x7f count 16 datatype 7 op 0 root 0 comm 0x{}a [nranks=2] stream 0x5\n", rank + 1);
    log += head + fmt::format("Broadcast: opCount 2 sendbuff 0x7f recvbuff 0x7f count 8 datatype 7 op 0 root 1 comm 0x{}a [nranks=2] stream 0x5\n", rank + 1);
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
  ByteStream bad("node1:1:2 [0] NCCL INFO AllReduce: opCount 0 count x datatype 9 op 0 root 0 comm 0x1 [nranks=2]\n", "nccl.log");
  EXPECT_THAT(refusal([&] { import_nccl_log(bad, other); }), HasSubstr("nccl.log: line 1"));
}

TEST(Import, chakra_reads_what_medley_writes) {
  Trace trace;
  import_flight_json(flight, "rank0.json", trace);
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / fmt::format("medley-chakra-{}", getpid());
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
  const std::string cut("\x07\x0a\x05" "0.0.4" "\x30\x08", 10);
  ByteStream damaged(cut, "cut.et");
  Trace none;
  EXPECT_THAT(refusal([&] { import_chakra(damaged, none); }), HasSubstr("is cut off"));
}

/// Compressed files are decompressed on the fly; damaged ones are rejected with the byte.
TEST(Import, gzip_and_zstd) {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / fmt::format("medley-packed-{}", getpid());
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
