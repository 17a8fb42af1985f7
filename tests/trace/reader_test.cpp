// The reader of record files: exact on good ones, an error with the place on bad ones, and up to the last
// whole record on truncated ones.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <functional>
#include <medley/error.hpp>

#include "trace/clocks.hpp"
#include "trace/files.hpp"
#include "trace/record_reader.hpp"
#include "trace/summary.hpp"

namespace medley::trace {
namespace {

using test::File;

std::vector<Event> read(const std::vector<std::byte>& bytes) {
  Trace trace;
  read_records(bytes, "f", trace);
  std::vector<Event> out;
  trace.ranks.at(0).for_each([&](const Event& event) { out.push_back(event); });
  return out;
}

std::string refusal(const std::vector<std::byte>& bytes) {
  try {
    read(bytes);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::invalid);
    return error.what();
  }
  return "accepted";
}

TEST(RecordReader, sizes_are_those_of_the_full_tensor) {
  File file;
  file.add(Op::all_reduce, 100, 100);
  file.add(Op::all_gather, 100, 200);
  file.add(Op::reduce_scatter, 200, 100);
  file.add(Op::gather, 100, 0);     // not the root: its part, times two ranks
  file.add(Op::scatter, 200, 100);  // the root
  file.add(Op::all_to_all, 200, 200);
  file.add(Op::all_to_allv, 150, 90);
  file.add(Op::broadcast, 0, 70);
  file.add(Op::barrier, 0, 0, DType::u8);
  const auto events = read(file.bytes());
  const std::int64_t bytes[] = {400, 800, 800, 800, 800, 800, 600, 280, 0};
  ASSERT_EQ(events.size(), 9u);
  for (std::size_t i = 0; i < events.size(); ++i) EXPECT_EQ(events[i].bytes, bytes[i]) << name(events[i].op);
}

TEST(RecordReader, exposed_time_is_what_the_program_waited) {
  File file;
  file.add(Op::all_reduce, 1, 1);  // blocked from issue to end: 60
  auto& overlapped = file.add(Op::all_reduce, 1, 1);
  overlapped.flags = core::record_async;  // never waited for
  auto& waited = file.add(Op::all_reduce, 1, 1);
  waited.flags = core::record_async;
  waited.waited = waited.issued + 45;  // 15 of 60
  auto& future = file.add(Op::all_reduce, 1, 1);
  future.flags = core::record_async | core::record_wait_unknown;
  const auto events = read(file.bytes());
  EXPECT_DOUBLE_EQ(events[0].exposed, 60);
  EXPECT_DOUBLE_EQ(events[1].exposed, 0);
  EXPECT_DOUBLE_EQ(events[2].exposed, 15);
  EXPECT_TRUE(events[1].exposed_known && events[2].exposed_known);
  EXPECT_FALSE(events[3].exposed_known);
}

TEST(RecordReader, a_ring_is_read_from_its_oldest_record) {
  File file;
  file.header.capacity = 4;
  for (int i = 0; i < 4; ++i) file.add(Op::barrier, 0, 0, DType::u8);
  file.header.issued = 6;
  file.records[0].index = file.records[0].sequence = 5;
  file.records[1].index = file.records[1].sequence = 6;
  const auto events = read(file.bytes());
  ASSERT_EQ(events.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(events[i].sequence, i + 3);
}

TEST(RecordReader, a_record_that_was_being_written_is_left_out) {
  File file;
  file.add(Op::barrier, 0, 0, DType::u8);
  file.add(Op::barrier, 0, 0, DType::u8).state = core::RecordState::writing;
  EXPECT_EQ(read(file.bytes()).size(), 1u);
}

TEST(RecordReader, refusals_say_where) {
  const auto with = [](const std::function<void(File&)>& damage) {
    File file;
    file.add(Op::all_reduce, 4, 4);
    file.add(Op::all_reduce, 4, 4);
    damage(file);
    return refusal(file.bytes());
  };
  const std::string second = fmt::format("f: record 2 at byte {}: ", 256 + 1024 + sizeof(core::Record));
  EXPECT_EQ(with([](File& f) { f.records[1].op = 99; }), second + "there is no operation of number 99");
  EXPECT_EQ(with([](File& f) { f.records[1].comm = 7; }), second + "there is no comm of number 7");
  EXPECT_EQ(with([](File& f) { f.records[1].in_count = -1; }), second + "it cannot give this many elements: -1");
  EXPECT_EQ(with([](File& f) { f.records[1].backend = 9; }), second + "there is no backend of number 9");
  EXPECT_EQ(with([](File& f) { f.header.rank = 2; }), "f: header: there is no rank 2 of 2");
  EXPECT_EQ(with([](File& f) { f.header.ns_per_tick = 0; }), "f: header: a clock tick cannot be 0 ns");
  EXPECT_EQ(with([](File& f) { f.header.magic[0] = 'X'; }), "f: is not a record file of Medley");
  EXPECT_NE(with([](File& f) { f.header.version = 77; }).find("has format 77, which a newer version of Medley wrote"),
            std::string::npos);
  EXPECT_NE(with([](File& f) { f.notes[0].second = "{}"; }).find("note at byte 256: a comm needs a name and ranks"),
            std::string::npos);
  EXPECT_NE(with([](File& f) { f.notes[0].second = R"({"name":"w","ranks":[5]})"; }).find("5 is not a rank of 2"),
            std::string::npos);
}

TEST(RecordReader, files_of_two_jobs_are_not_mixed) {
  File a, b;
  b.header.rank = 1;
  b.header.size = 4;
  const auto first = a.bytes(), second = b.bytes();
  Trace trace;
  read_records(first, "a", trace);
  EXPECT_THROW(read_records(second, "b", trace), Error);
}

RC_GTEST_PROP(RecordReader, cut_anywhere_it_keeps_the_whole_records_or_refuses, (std::uint16_t seed)) {
  File file;
  for (int i = 0; i < 20; ++i) file.add(Op::all_reduce, i, i);
  auto bytes = file.bytes();
  const std::size_t start = 256 + 1024, cut = seed % (bytes.size() + 1);
  bytes.resize(cut);
  if (cut < start) {
    RC_ASSERT(refusal(bytes).find("cut off") != std::string::npos ||
              refusal(bytes).find("not a record file") != std::string::npos);
  } else {
    RC_ASSERT(read(bytes).size() == (cut - start) / sizeof(core::Record));
  }
}

RC_GTEST_PROP(RecordReader, flipped_bytes_are_read_or_refused,
              (std::vector<std::pair<std::uint16_t, std::uint8_t>> flips)) {
  File file;
  for (int i = 0; i < 5; ++i) file.add(Op::all_gather, i, 2 * i);
  auto bytes = file.bytes();
  for (const auto& [at, value] : flips) bytes[at % bytes.size()] = static_cast<std::byte>(value);
  try {
    Trace trace;
    read_records(bytes, "f", trace);
    align_clocks(trace);
    summarise(trace, trace.ranks[0], find_steps(trace, trace.ranks[0]));
  } catch (const Error& error) {
    RC_ASSERT(error.kind() == ErrorKind::invalid);
  }
}

RC_GTEST_PROP(Clocks, hosts_with_shifted_and_drifting_clocks_come_together,
              (std::int32_t shift_us, std::int16_t ppm_tenths)) {
  // Rank 1 is on another host; both complete each of 1,000 barriers at the same moment.
  File a, b;
  std::strcpy(a.header.host, "a");
  std::strcpy(b.header.host, "b");
  b.header.rank = 1;
  const double drift = 1 + ppm_tenths % 1000 * 1e-7;
  for (File* file : {&a, &b}) file->header.capacity = 2000;
  b.header.start_real_ns = std::int64_t{shift_us % 1'000'000} * 1000;
  for (int i = 0; i < 1000; ++i) {
    a.add(Op::barrier, 0, 0, DType::u8);
    auto& there = b.add(Op::barrier, 0, 0, DType::u8);
    const double end = 1e6 * (i + 1);
    a.records.back().issued = 1000 + static_cast<std::uint64_t>(end) - 500;
    a.records.back().completed = 1000 + static_cast<std::uint64_t>(end);
    there.issued = 1000 + static_cast<std::uint64_t>(end * drift) - 500;
    there.completed = 1000 + static_cast<std::uint64_t>(end * drift);
  }
  const auto first = a.bytes(), second = b.bytes();
  Trace trace;
  read_records(first, "a", trace);
  read_records(second, "b", trace);
  align_clocks(trace);
  std::vector<double> ends[2];
  for (int rank : {0, 1}) trace.rank(rank).for_each([&](const Event& event) { ends[rank].push_back(event.completed); });
  for (std::size_t i = 0; i < 1000; ++i) RC_ASSERT(std::abs(ends[0][i] - ends[1][i]) < 1000.0);
}

}  // namespace
}  // namespace medley::trace
