// What a table says about an operation, and what tune and bench report beside their rows.
#include "tune/explain.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <medley/error.hpp>
#include <nlohmann/json.hpp>

#include "route/tables.hpp"
#include "tune/bench_job.hpp"
#include "tune/rank_setup.hpp"
#include "tune/size_text.hpp"
#include "tune/tune_job.hpp"
#include "tune/winners.hpp"

namespace medley::tune {
namespace {

using route::cell;
using route::small_table;
using route::timing;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Explain, GivesTheRouteItsRangeAndTheRunnersUp) {
  const Explanation said = explain(small_table(), {.op = Op::all_reduce, .bytes = 64, .ranks = 2});
  ASSERT_TRUE(said.found);
  EXPECT_EQ(said.route.algorithm, "native");
  EXPECT_EQ(said.from, 0);
  EXPECT_LT(said.to, 1 << 20);
  EXPECT_EQ(said.row_bytes, 64);
  ASSERT_EQ(said.routes.size(), 2u);
  EXPECT_TRUE(said.routes[0].taken);
  EXPECT_FALSE(said.routes[1].taken);
  EXPECT_DOUBLE_EQ(said.routes[1].slower, 2);
  const auto json = to_json(said);
  EXPECT_EQ(json["reason"], "table");
  EXPECT_EQ(json["route"]["backend"], "shm");
  EXPECT_EQ(json["routes"].size(), 2u);
  EXPECT_EQ(json["table"], small_table().hash());
}

TEST(Explain, RoutesSendsBySizeOnCommsWithExactSizes) {
  route::Table table;
  for (const auto& [bytes, shm, mpi] : {std::tuple{64, 1.0, 2.0}, std::tuple{1 << 20, 300.0, 100.0}}) {
    route::Cell cell;
    cell.key = {.op = Op::send, .shape = {1, 2}, .bytes = bytes};
    cell.routes = {{{"shm", "native"}, shm, shm, shm, 10}, {{"mpi", "native"}, mpi, mpi, mpi, 10}};
    if (mpi < shm) std::swap(cell.routes[0], cell.routes[1]);
    table.put(cell);
  }
  ExplainRequest request{.op = Op::send, .bytes = 64, .ranks = 2};
  const Explanation loose = explain(table, request);
  EXPECT_EQ(loose.to, INT64_MAX);
  EXPECT_THAT(loose.why, Contains(HasSubstr("one route for all sizes")));
  request.exact = true;
  EXPECT_EQ(explain(table, request).route.backend, "shm");
  EXPECT_LT(explain(table, request).to, 1 << 20);
  request.bytes = 1 << 20;
  EXPECT_EQ(explain(table, request).route.backend, "mpi");
}

TEST(Explain, SaysHowFarTheRowIsFromWhatWasAsked) {
  const Explanation said =
      explain(small_table(), {.op = Op::all_reduce, .bytes = 100, .ranks = 4, .dtype = DType::bf16});
  EXPECT_THAT(said.why,
              Contains(HasSubstr("1 host x 4 ranks was not measured; the rows of 1 host x 2 ranks are the nearest")));
  EXPECT_THAT(said.why, Contains(HasSubstr("half elements were not measured")));
  EXPECT_THAT(said.why, Contains("the row nearest in size is 64"));
}

TEST(Explain, WithoutARowTheBuiltInOrderDecides) {
  const Explanation said = explain(small_table(), {.op = Op::broadcast, .bytes = 64, .ranks = 2});
  EXPECT_FALSE(said.found);
  EXPECT_THAT(said.routes, IsEmpty());
  EXPECT_EQ(to_json(said)["reason"], "fallback");
  EXPECT_FALSE(explain(small_table(), {.op = Op::all_reduce, .bytes = 64, .ranks = 2, .backends = {"mpi"}}).found);
}

TEST(Explain, RefusesMoreHostsThanRanks) {
  EXPECT_THROW(explain(small_table(), {.op = Op::all_reduce, .bytes = 64, .ranks = 2, .hosts = 4}), Error);
}

TEST(Winners, AreRangesOfSizesWithWhatTheyBeat) {
  const std::vector<Winner> all = winners(small_table());
  ASSERT_EQ(all.size(), 3u);  // all_reduce: native, then ring; all_to_all: pairwise
  EXPECT_EQ(all[0].route.algorithm, "native");
  EXPECT_EQ(all[0].to + 1, all[1].from);
  EXPECT_EQ(all[1].to, INT64_MAX);
  EXPECT_EQ(all[1].ahead, 0) << "its rivals are algorithms of the same library";
  EXPECT_EQ(all[2].op, Op::all_to_all);
  route::Table table = small_table();
  table.put(cell(Op::all_to_all, {1, 2}, 4096,
                 {timing("shm", "pairwise", 3), timing("shm", "linear", 4), timing("mpi", "native", 6)}));
  const Winner winner = winners(table).back();
  EXPECT_DOUBLE_EQ(winner.ahead, 2);
  EXPECT_EQ(winner.rival, (Choice{"mpi", "native"}));
}

TEST(Winners, ARouteOfAStepMayBeSlowerAlone) {
  route::Table table = route::tuned_table();  // all_to_all over mpi
  table.put(cell(Op::all_to_all, {1, 2}, 4096, {timing("shm", "pairwise", 3), timing("mpi", "pairwise", 6)}));
  EXPECT_DOUBLE_EQ(winners(table).back().ahead, 0.5);
}

TEST(Mixes, AreComparedWithTheBestLibraryAndTheBestPair) {
  const auto row = [](const char* backend, double us) {
    return MixRow{.mix = "moe", .backend = backend, .memory = Memory::host, .time = {us, 0, us}, .iterations = 5};
  };
  std::vector<MixRow> rows{row("shm", 200), row("gloo", 400), row("shm+gloo", 150), row("auto", 100)};
  compare_mixes(rows);
  EXPECT_DOUBLE_EQ(rows[3].speedup, 2);
  EXPECT_DOUBLE_EQ(rows[3].speedup_over_two, 1.5);
  const auto json = to_json(MixResult{{}, rows});
  EXPECT_EQ(json["mixes"][3]["speedup"], 2.0);
  EXPECT_FALSE(json["mixes"][3].contains("speedup_low"));
  EXPECT_THROW(check_mixes({"moe", "stew"}), Error);
}

TEST(Mixes, AGainIsFormedWithinRounds) {
  std::vector<double> noise;  // that all rows of a round share
  for (int i = 0; i < 30; ++i) noise.push_back(100 + 10 * (i % 7));
  const auto row = [&](const char* backend, double factor) {
    MixRow out{.mix = "moe", .backend = backend, .memory = Memory::host};
    for (const double us : noise) out.samples_us.push_back(us * factor);
    out.time = summarize(out.samples_us);
    return out;
  };
  std::vector<MixRow> rows{row("mpi", 1.5), row("auto", 1)};
  compare_mixes(rows);
  EXPECT_DOUBLE_EQ(rows[1].speedup, 1.5);
  EXPECT_DOUBLE_EQ(rows[1].speedup_low, 1.5);
  EXPECT_DOUBLE_EQ(rows[1].speedup_high, 1.5);
  EXPECT_EQ(to_json(MixResult{{}, rows})["mixes"][1]["speedup_high"], 1.5);
}

TEST(Bench, AutoAloneOpensOnlyWhatTheTableChooses) {
  using List = std::vector<std::string>;
  EXPECT_EQ(backends_to_open({"auto"}), List{"auto"});
  EXPECT_EQ(backends_to_open({"mpi", "auto"}), List{"mpi"});
  EXPECT_EQ(backends_to_open({}), List{});  // compares all
}

TEST(Bench, RowsAreEqualInJsonAndCsv) {
  BenchResult result;
  result.job.ranks = 2;
  result.rows.push_back({.op = Op::all_gatherv,
                         .backend = "shm",
                         .algorithm = "native",
                         .counts = Counts::skewed,
                         .bytes = 64,
                         .time = {1.5, 0.25, 2},
                         .algbw = 1,
                         .busbw = 0.5,
                         .iterations = 7,
                         .fastest = true});
  const auto json = to_json(result);
  EXPECT_EQ(json["rows"][0]["counts"], "skewed");
  EXPECT_EQ(json["rows"][0]["median_us"], 1.5);
  EXPECT_THAT(to_csv(result.rows), HasSubstr("all_gatherv,shm,native,host,"));
  EXPECT_THAT(to_csv(result.rows), HasSubstr(",skewed,64,1.5000,0.2500,2.0000,1.000000,0.500000,7,1\n"));
}

TEST(Tune, MeasuresExactlyWhatIsNeeded) {
  TuneOptions options{.ops = {Op::barrier}, .sizes = {}, .backends = {}};
  restrict_to(options,
              {{Op::all_reduce, DType::bf16, 64}, {Op::all_reduce, DType::bf16, 128}, {Op::all_gather, DType::u8, 4}});
  EXPECT_EQ(options.ops, (std::vector<Op>{Op::all_reduce, Op::all_gather}));
  EXPECT_EQ(options.dtypes, (std::vector<DType>{DType::bf16}));  // of reductions alone
  EXPECT_EQ(options.exactly.size(), 3u);
}

TEST(SizeText, IsTheShortestExactSpelling) {
  EXPECT_EQ(size_text(0), "0");
  EXPECT_EQ(size_text(1000), "1000");
  EXPECT_EQ(size_text(65536), "64K");
  EXPECT_EQ(size_text(std::int64_t{3} << 30), "3G");
}

}  // namespace
}  // namespace medley::tune
