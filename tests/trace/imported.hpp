// What the tests of imported traces share.
#pragma once
#include <gtest/gtest.h>

#include <medley/error.hpp>
#include <string>
#include <vector>

#include "trace/trace.hpp"

namespace medley::trace::test {

inline std::vector<Event> events_of(const Trace& trace) {
  std::vector<Event> out;
  for (const RankTrace& rank : trace.ranks) rank.for_each([&](const Event& event) { out.push_back(event); });
  return out;
}

/// The text of the error that `action` ends with.
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

/// A dump of PyTorch's flight recorder, and what is read from it.
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

inline void expect_flight(const Trace& trace) {
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

}  // namespace medley::trace::test
