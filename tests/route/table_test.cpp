// Route tables as files: a written table reads back equal, and invalid input is refused.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <medley/error.hpp>
#include <nlohmann/json.hpp>

#include "route/tables.hpp"

namespace medley::route {
namespace {

using ::testing::HasSubstr;

std::string refusal(const std::string& text) {
  try {
    Table::parse(text, "t.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::invalid);
    return error.what();
  }
  return "accepted";
}

std::string with(const std::string& was, const std::string& now) {
  std::string text = small_table().text();
  const std::size_t at = text.find(was);
  EXPECT_NE(at, text.npos) << was;
  return text.replace(at, was.size(), now);
}

TEST(Table, ReadsWhatItWrote) {
  const Table table = small_table();
  const Table again = Table::parse(table.text(), "t");
  EXPECT_EQ(again.text(), table.text());
  EXPECT_EQ(again.hash(), table.hash());
  EXPECT_EQ(again.machine, table.machine);
  ASSERT_EQ(again.cells().size(), 3u);
  const Cell* found = again.find(table.cells()[1].key);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->routes.front().route.algorithm, "ring");  // the fastest is first
  EXPECT_EQ(found->routes.front().samples, 20);
}

TEST(Table, HasTheHashOfWhatIsReadBack) {
  Table table;
  table.machine = this_machine();
  for (int i = 1; i < 2000; ++i) {  // medians of times in ns end on half of them
    const double us = 0.0005 * i;
    table.put(cell(Op::all_reduce, {1, 2}, i, {timing("shm", "native", us), timing("shm", "ring", 2 * us + 0.0005)}));
  }
  EXPECT_EQ(Table::parse(table.text(), "t").hash(), table.hash());
}

TEST(Table, AnotherFigureIsAnotherHash) {
  EXPECT_NE(Table::parse(with("\"samples\": 20", "\"samples\": 21"), "t").hash(), small_table().hash());
}

TEST(Table, KnowsUpToWhichSizeFusionPays) {
  Table table = small_table();
  EXPECT_EQ(table.fusion_limit(Memory::host, {1, 2}), std::nullopt);
  table.put(FusionRow{.shape = {1, 2}, .sizes = {{65536, 30, 40}, {1024, 90, 10}, {16384, 50, 30}, {262144, 90, 80}}});
  table.put(FusionRow{.shape = {2, 1}, .sizes = {{1024, 5, 6}}});
  const Table again = Table::parse(table.text(), "t");
  EXPECT_EQ(again.text(), table.text());
  EXPECT_EQ(again.fusion_limit(Memory::host, {1, 2}), 16384) << "the last before the first size that is slower";
  EXPECT_EQ(again.fusion_limit(Memory::host, {2, 1}), 0);
  EXPECT_EQ(again.fusion_limit(Memory::cuda, {1, 2}), std::nullopt);
  table.put(FusionRow{.shape = {1, 2}, .backend = "mpi", .sizes = {{65536, 40, 30}}});
  EXPECT_EQ(Table::parse(table.text(), "t").fusion_limit(Memory::host, {1, 2}, "mpi"), 65536);
  EXPECT_EQ(Table::parse(table.text(), "t").fusion_limit(Memory::host, {1, 2}), 16384)
      << "of calls that name no backend";
  table.put(FusionRow{.shape = {1, 2}, .sizes = {{1024, 90, 10}}});
  EXPECT_EQ(table.fusion().size(), 3u) << "replaced";
  EXPECT_EQ(table.fusion_limit(Memory::host, {1, 2}), 1024);
  std::string broken = again.text();
  broken.replace(broken.find("\"separate_us\": 90.000"), 21, "\"separate_us\": -90.00");
  EXPECT_THAT(refusal(broken), HasSubstr("fusion[0].sizes[0].separate_us"));
}

TEST(Table, PutReplacesTheCellOfItsKey) {
  Table table = small_table();
  table.put(cell(Op::all_to_all, {1, 2}, 4096, {timing("mpi", "native", 2)}));
  EXPECT_EQ(table.cells().size(), 3u);
  EXPECT_EQ(table.find(table.cells().back().key)->routes.front().route.backend, "mpi");
}

TEST(Table, ARefusalNamesThePlace) {
  EXPECT_THAT(refusal(with("\"median_us\": 2.000", "\"median_us\": -2")),
              HasSubstr("t.json: cells[0].routes[1].median_us: -2"));
  EXPECT_THAT(refusal(with("\"median_us\": 2.000", "\"median_us\": 1e999")), HasSubstr("not JSON"));
  EXPECT_THAT(refusal(with("\"low_us\": 1.800", "\"low_us\": 5")), HasSubstr("cells[0].routes[1].low_us"));
  EXPECT_THAT(refusal(with("\"samples\": 20", "\"samples\": 0")), HasSubstr("cells[0].routes[0].samples: 0"));
  EXPECT_THAT(refusal(with("\"samples\": 20", "\"samples\": 18446744073709551615")),
              HasSubstr("cells[0].routes[0].samples"));
  EXPECT_THAT(refusal(with("\"op\": \"all_to_all\"", "\"op\": \"spin\"")),
              HasSubstr("cells[2].op: \"spin\" is not an operation"));
  EXPECT_THAT(refusal(with("\"bytes\": 64", "\"bytes\": -1")), HasSubstr("cells[0].bytes: -1"));
  EXPECT_THAT(refusal(with("\"hosts\": 1", "\"hosts\": 0")), HasSubstr("cells[0].hosts: 0"));
  EXPECT_THAT(refusal(with("\"dtype\": \"any\"", "\"dtype\": \"half\"")), HasSubstr("cells[2].dtype"));
  EXPECT_THAT(refusal(with("\"memory\": \"host\"", "\"memory\": \"tape\"")), HasSubstr("cells[0].memory"));
  EXPECT_THAT(refusal(with("\"algorithm\": \"ring\"", "\"algorithm\": \"a/b\"")), HasSubstr("is not a name"));
  EXPECT_THAT(refusal(with("\"algorithm\": \"ring\"", "\"algorithm\": \"native\"")),
              HasSubstr("shm/native is there twice"));
  EXPECT_THAT(refusal(with("\"bytes\": 1048576", "\"bytes\": 64")),
              HasSubstr("all_reduce of 64 bytes on 1 host x 2 ranks is there twice"));
  EXPECT_THAT(refusal(with("\"medley_routes\": 1", "\"medley_routes\": 3")),
              HasSubstr("this route table has format 3, which a newer version"));
  EXPECT_THAT(refusal(with("\"machine\"", "\"engine\"")), HasSubstr("\"machine\" is missing"));
  EXPECT_THAT(refusal("[]"), HasSubstr("it is not an object"));
  EXPECT_EQ(refusal("{\"a\xff"),
            "route table t.json is not JSON: parse error at line 1, column 4: syntax error while parsing object key - "
            "invalid string: ill-formed UTF-8 byte");
  EXPECT_THAT(refusal(with("\"ranks_per_host\": 2", "\"ranks_per_host\": 1048577")),
              HasSubstr("ranks_per_host: 1048577 is not between 1 and 1048576"));
  EXPECT_THAT(refusal("{\n\"medley_routes\": 1,\n"), HasSubstr("line 3"));
  EXPECT_THAT(refusal(std::string(100'000, '[')), HasSubstr("not JSON"));
}

TEST(Table, ReadsTheStepThatItWasTunedFor) {
  const Table table = tuned_table();
  const Table again = Table::parse(table.text(), "t");
  EXPECT_EQ(again.text(), table.text());
  ASSERT_TRUE(again.step);
  EXPECT_EQ(again.step->routes.size(), 3u);
  EXPECT_EQ(again.step->best_library()->name, "shm");
  EXPECT_EQ(again.step->backends(), (std::set<std::string>{"mpi", "shm"}));
  const auto json = nlohmann::json::parse(table.text());  // what other programs read
  EXPECT_EQ(json["medley_routes"], 2);
  EXPECT_EQ(json["step"], (nlohmann::json{{"shm", 120.0}, {"mpi", 150.0}}));
  EXPECT_EQ(json["auto_us"], 100.0);
  EXPECT_FALSE(json["tuned_for"].contains("needed_s"));
  Table hurried = tuned_table();
  hurried.step->settled = false, hurried.step->needed_s = 70;
  EXPECT_EQ(Table::parse(hurried.text(), "t").step->needed_s, 70);
  Table of_library = tuned_table("mpi");
  EXPECT_EQ(of_library.step->best_library()->name, "mpi") << "the one that was chosen, even if another is as fast";
  EXPECT_EQ(nlohmann::json::parse(small_table().text())["medley_routes"], 1);  // older versions read what has no step
}

TEST(Table, RecordsTheHostOfEachRankWhereTheyAreNotInBlocks) {
  Table table = tuned_table();
  EXPECT_EQ(table.step->hosts(), (std::vector<int>{0, 0}));
  EXPECT_FALSE(nlohmann::json::parse(table.text())["tuned_for"].contains("placement"));
  table.step->shape = {2, 2}, table.step->placement = {0, 0, 1};
  EXPECT_EQ(Table::parse(table.text(), "t").step->hosts(), (std::vector<int>{0, 0, 1}));
  table.step->placement = {0, 1, 1, 1};
  EXPECT_THAT(refusal(table.text()), HasSubstr("tuned_for.placement: its shape is"));
  table.step->placement = {0, 0, 2};
  EXPECT_THAT(refusal(table.text()), HasSubstr("tuned_for.placement[2]: 2 is not between 0 and 1"));
  table.step->placement = {0, 0, 1, 1, 1};
  EXPECT_THAT(refusal(table.text()), HasSubstr("tuned_for.placement: it has 5 ranks"));
}

TEST(Table, ReadsWhatMixingCosts) {
  Table table = small_table();
  table.put(MixingCost{Memory::host, {2, 2}, "gloo", 41.5});
  table.put(MixingCost{Memory::host, {1, 2}, "gloo", 3});
  table.put(MixingCost{Memory::host, {1, 2}, "gloo", 4});  // replaces
  table.put(MixingCost{Memory::host, {1, 2}, "ucx", 0});
  const Table again = Table::parse(table.text(), "t");
  EXPECT_EQ(again.text(), table.text());
  ASSERT_EQ(again.mixing().size(), 3u);
  EXPECT_EQ(again.mixing_us(Memory::host, {1, 2}, "gloo"), 4);
  EXPECT_EQ(again.mixing_us(Memory::host, {2, 2}, "shm+gloo"), 41.5) << "the dearer half of a pair";
  EXPECT_EQ(again.mixing_us(Memory::host, {2, 2}, "mpi"), 0);
  EXPECT_EQ(nlohmann::json::parse(table.text())["medley_routes"], 2);
  std::string text = table.text();
  EXPECT_THAT(refusal(text.replace(text.find("\"us\": 4.000"), 11, "\"us\": -1")), HasSubstr("mixing[0].us"));
}

TEST(Table, ARefusedStepNamesThePlace) {
  const auto refused = [](const std::string& was, const std::string& now) {
    std::string text = tuned_table().text();
    const std::size_t at = text.find(was);
    EXPECT_NE(at, text.npos) << was;
    return refusal(text.replace(at, was.size(), now));
  };
  EXPECT_THAT(refused("\"gain_low\": 1.1000", "\"gain_low\": 2"), HasSubstr("tuned_for.gain_low"));
  EXPECT_THAT(refused("\"hosts\": 1, \"ranks_per_host\": 2, \"memory\"",
                      "\"hosts\": 65536, \"ranks_per_host\": 65536, \"memory\""),
              HasSubstr("tuned_for.ranks_per_host: 65536 is not between 1 and 16"));
  EXPECT_THAT(refused("\"settled\": true", "\"settled\": 1"),
              HasSubstr("tuned_for.settled: 1 is neither true nor false"));
  EXPECT_THAT(refused("\"from\": 4096", "\"from\": 5000"),
              HasSubstr("tuned_for.routes[1]: it begins at 5000 bytes; it must at 4096"));
  EXPECT_THAT(refused("\"to\": 4095", "\"to\": 9223372036854775807"), HasSubstr("tuned_for.routes[0]"));
  EXPECT_THAT(refused("{\"name\": \"auto\"", "{\"name\": \"own\""),
              HasSubstr("tuned_for.times: the first time is not that of auto"));
  EXPECT_THAT(refused("\"algorithm\": \"pairwise\"}", "\"algorithm\": \"a/b\"}"),
              HasSubstr("tuned_for.routes[2].algorithm"));
}

TEST(Table, DeepNestingIsRefused) {
  const std::string deep = std::string(200000, '[') + std::string(200000, ']');
  const std::string text = R"({"medley_routes": 1, "machine": {"cpu": )" + deep + R"(}, "cells": []})";
  // An error that quotes the value would recurse
  EXPECT_THAT(refusal(text), HasSubstr("nests more than 64 brackets"));
}

TEST(Table, NoBeginningOfATableIsATable) {
  const std::string whole = small_table().text();
  for (std::size_t length = 0; length + 2 < whole.size(); ++length) {
    EXPECT_NE(refusal(whole.substr(0, length)), "accepted") << length;
  }
}

TEST(Table, AFileIsReplacedWhole) {
  const auto folder = std::filesystem::temp_directory_path() / fmt::format("medley_table_{}", getpid());
  const auto file = folder / "deeper" / "routes.json";
  Table table = small_table();
  table.save(file);
  EXPECT_EQ(Table::load(file).hash(), table.hash());
  table.put(cell(Op::broadcast, {1, 2}, 8, {timing("shm", "native", 1)}));
  table.save(file);
  EXPECT_EQ(Table::load(file).hash(), table.hash());
  // No temporary file is left
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder / "deeper"), {}), 1);
  std::filesystem::remove_all(folder);
  EXPECT_THROW(Table::load(file), Error);
  EXPECT_THROW(Table::load("/"), Error);
}

TEST(Machine, DecidesWhetherATableFits) {
  Machine here = this_machine(), other = here;
  EXPECT_EQ(misfit(here, here), "");
  EXPECT_GE(here.cores, 1);
  other.cores += 1;
  EXPECT_THAT(misfit(other, here), HasSubstr("cores"));
  other = here;
  other.libraries["mpi"] = "4.1";
  EXPECT_EQ(misfit(other, here), "");  // a job without mpi may use the rows of the rest
  here.libraries["mpi"] = "5.0";
  EXPECT_THAT(misfit(other, here), HasSubstr("mpi 4.1, here is 5.0"));
}

}  // namespace
}  // namespace medley::route
