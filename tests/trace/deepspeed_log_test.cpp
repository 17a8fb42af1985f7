// DeepSpeed's comms logger: its table and its verbose lines, with sizes as full tensors; damaged ones are rejected with
// the line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trace/import_parts.hpp"
#include "trace/imported.hpp"

namespace medley::trace {
namespace {

using test::events_of;
using test::refusal;
using ::testing::HasSubstr;

void read_deepspeed(std::string_view text, Trace& trace) {
  ByteStream in(text, "log");
  import_deepspeed(in, trace);
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
    if (++lines > 2)
      mixed += "[W1118 reducer.cpp:1234] Warning: find_unused_parameters=True\n    warnings.warn(message)\n";
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
  EXPECT_EQ(refusal([&] {
              read_deepspeed("Comm. Op  Message Size Count Total Latency(ms)\nteleport\n   1.0 KB 3 1.0 1.0 1 1\n",
                             trace);
            }),
            "log: line 3: \"teleport\" is not an operation that the comms logger has");
}

TEST(Import, deepspeed_verbose_lines_labels_and_stragglers) {
  Trace verbose;
  read_deepspeed(
      "[rank1]: [2024-05-01 10:00:00,123] [INFO] [logging.py:96:log_dist] [Rank 1] comm op: all_reduce | time (ms): 0.50 | "
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
  text +=
      "_______________________________\nBreakdown with straggler effect\n-------------------------------\n"
      "Comm. Op            Message Size        Count               Total comm lat(ms)  Total straggler(ms) Avg comm lat(ms)    "
      "Avg straggler(ms)\nbroadcast\n                    2.0 KB              146                 11.12               1.0                 0.08                0.01\n";
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    labelled += "[rank0]: " + text.substr(at, end - at) + "\n";
    at = end == std::string::npos ? text.size() : end + 1;
  }
  for (const auto& [prefix, rank] : {std::pair("worker-0: ", 0), std::pair(" 3: ", 3), std::pair("[default1]:", 1)}) {
    std::string prefixed = labelled;
    for (std::size_t at = 0; (at = prefixed.find("[rank0]: ", at)) != std::string::npos;)
      prefixed.replace(at, 9, prefix);
    Trace trace;
    read_deepspeed("worker-1: other output\n" + prefixed, trace);
    EXPECT_EQ(events_of(trace).size(), 5u) << prefix;
    EXPECT_EQ(trace.ranks[0].rank, rank) << prefix;
  }
  Trace plain, tables;
  read_deepspeed(deepspeed_table, plain);
  read_deepspeed(labelled, tables);
  ASSERT_EQ(events_of(tables).size(), events_of(plain).size()) << "the second table repeats the first";
  for (std::size_t i = 0; i < events_of(plain).size(); ++i)
    EXPECT_EQ(events_of(tables)[i].bytes, events_of(plain)[i].bytes);
}

}  // namespace
}  // namespace medley::trace
