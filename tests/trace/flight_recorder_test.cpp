// PyTorch's flight recorder, as JSON and as pickle: nothing in a pickle is run, and damaged files are rejected with the
// place.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trace/import_parts.hpp"
#include "trace/imported.hpp"
#include "trace/pickle.hpp"

namespace medley::trace {
namespace {

using test::expect_flight;
using test::flight;
using test::refusal;
using ::testing::HasSubstr;

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
  text.replace(text.find("\"record_id\""), 11,
               R"("frames": [{"name": "all_reduce", "filename": "a.py", "line": 3}], "record_id")");
  Trace trace;
  import_flight_json(text, "f", trace);
  expect_flight(trace);
  EXPECT_THAT(refusal([&] { import_flight_json(R"({"entries": [{"frames": [1,}]})", "f", trace); }),
              HasSubstr("is not JSON from byte 28"));
}

TEST(Import, flight_recorder_refuses_by_entry) {
  std::string bad = flight;
  bad.replace(bad.find("[[10]]"), 6, "[[-1]]");
  Trace trace;
  EXPECT_EQ(refusal([&] { import_flight_json(bad, "f", trace); }), "f: entries[1]: input_sizes: -1 is not an extent");
  EXPECT_THAT(refusal([&] { import_flight_json("{\"entries\": [", "f", trace); }), HasSubstr("is not JSON from byte"));
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
  const std::string bytes = std::string("\x80\x02", 2) + "ctorch.jit._pickle\nbuild_intlist\n(](K\x03K\x04" + "etR.";
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

}  // namespace
}  // namespace medley::trace
