// Other tools' traces come in with full tensor sizes, whatever the tool wrote down; what is damaged is
// refused by place.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <medley/error.hpp>

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
  import_deepspeed(deepspeed_table, "log", trace);
  const auto events = events_of(trace);
  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(events[4].bytes, 16 << 20);  // the shard of 1 MB, of 16 ranks by 251.66 / 268.44 = 15/16
  EXPECT_EQ(events[0].op, Op::broadcast);
  EXPECT_EQ(events[0].bytes, 2048);
  EXPECT_EQ(events[0].count, 146);
  EXPECT_NEAR(events[0].duration(), 11.12e6 / 146, 1);
  EXPECT_EQ(events[1].bytes, 103022592);
  EXPECT_EQ(events[2].op, Op::reduce_scatter);  // its size is the whole input already
  EXPECT_EQ(events[2].count, 40);
  EXPECT_EQ(events[3].bytes, 0);
  EXPECT_EQ(trace.format, "deepspeed comms logger");
}

TEST(Import, deepspeed_refuses_by_line) {
  const std::string bad =
      std::string("Comm. Op  Message Size Count Total Latency(ms)\nall_reduce\n   12 XB 3 1.0 1.0 1 1\n");
  Trace trace;
  EXPECT_EQ(refusal([&] { import_deepspeed(bad, "log", trace); }),
            "log: line 3: expected a message size, a count and latencies");
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
  std::string laughs("\x80\x02]q\x00", 5);  // each list holds the one before ten times
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
  import_kineto(text, "t.json", trace);
  const auto events = events_of(trace);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].op, Op::reduce_scatter);
  EXPECT_EQ(events[0].bytes, 1600);
  EXPECT_EQ(events[0].sequence, 3u);
  EXPECT_DOUBLE_EQ(events[0].completed - events[0].started, 40'000);
  EXPECT_EQ(trace.groups[events[0].group].ranks, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(trace.ranks[0].rank, 1);
  EXPECT_EQ(trace.world, 8);
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
