// Choosing by size and shape, compared with an exhaustive search of all rows.
#include "route/choose.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>
#include <set>

#include "route/pair_name.hpp"
#include "route/tables.hpp"

namespace medley::route {
namespace {

std::string taken(const Chosen& chosen, std::int64_t bytes) {
  std::string route;
  for (const SizeRange& range : chosen.ranges) {
    if (bytes < range.from || bytes > range.to) continue;
    EXPECT_EQ(route, "") << "two ranges hold " << bytes;
    route = range.route.backend + "/" + range.route.algorithm;
  }
  return route;
}

Chosen ask(const Table& table, Op op, Shape shape, const Usable& usable = any_route) {
  return choose(table, op, Memory::host, reduces(op) ? DTypeClass::floating : DTypeClass::any, shape, usable);
}

/// A table of one operation and shape with random times, so close that routes are often near-equal.
struct Random {
  Table table;
  std::vector<std::int64_t> sizes;
  std::set<std::string> usable;
  bool sure = true;  ///< the intervals are narrow
  double equal() const { return sure ? near_ratio : tie_ratio; }
  bool can(const Choice& choice) const { return usable.count(choice.algorithm) > 0; }
};

Random any_table() {
  Random random;
  random.sure = *rc::gen::arbitrary<bool>();
  const auto steps = *rc::gen::inRange(1, 9);
  for (int i = 0; i < steps; ++i) {
    random.sizes.push_back(std::int64_t{4} << (2 * i));
    std::vector<Timing> routes;
    for (const char* name : {"a", "b", "c", "d"}) {
      if (*rc::gen::inRange(0, 6) > 0)
        routes.push_back(timing("shm", name, *rc::gen::inRange(100, 112), random.sure ? 0 : 0.1));
    }
    if (routes.empty()) routes.push_back(timing("shm", "a", 100));
    random.table.put(cell(Op::all_gather, {1, 4}, random.sizes.back(), routes));
  }
  for (const char* name : {"a", "b", "c", "d"}) {
    if (*rc::gen::inRange(0, 4) > 0) random.usable.insert(name);
  }
  return random;
}

const Timing* best_of(const Cell& cell, const Random& random) {
  for (const Timing& timing : cell.routes) {
    if (random.can(timing.route)) return &timing;
  }
  return nullptr;
}

TEST(Choose, IsNearTheBestAtEverySizeAndLeavesNoGap) {
  EXPECT_TRUE(rc::check([] {
    const Random random = any_table();
    const Chosen chosen = ask(random.table, Op::all_gather, {1, 4}, [&](const Choice& c) { return random.can(c); });
    std::int64_t next = 0;
    for (const SizeRange& range : chosen.ranges) {
      RC_ASSERT(range.from == next);
      RC_ASSERT(range.to >= range.from);
      next = range.to == INT64_MAX ? -1 : range.to + 1;
    }
    RC_ASSERT(chosen.ranges.empty() || next == -1);
    for (const Cell& row : random.table.cells()) {
      const Timing* best = best_of(row, random);
      if (!best) continue;
      bool found = false;
      for (const SizeRange& range : chosen.ranges) {
        if (row.key.bytes < range.from || row.key.bytes > range.to) continue;
        found = true;
        const Timing* here = row.find(range.route);
        RC_ASSERT(here && random.can(here->route));
        RC_ASSERT(here->median_us <= best->median_us * random.equal());
      }
      RC_ASSERT(found);
    }
  }));
}

/// The least number of routes that are near the best at every size, by exhaustive search.
std::size_t fewest(const Random& random, const std::vector<const Cell*>& rows, std::size_t from) {
  if (from == rows.size()) return 0;
  std::size_t least = rows.size();
  for (const char* name : {"a", "b", "c", "d"}) {
    if (!random.usable.count(name)) continue;
    for (std::size_t end = from; end < rows.size(); ++end) {
      const Timing* here = rows[end]->find({"shm", name});
      if (!here || here->median_us > best_of(*rows[end], random)->median_us * random.equal()) break;
      least = std::min(least, 1 + fewest(random, rows, end + 1));
    }
  }
  return least;
}

TEST(Choose, NearEqualRoutesDoNotAlternate) {
  EXPECT_TRUE(rc::check([] {
    const Random random = any_table();
    const Chosen chosen = ask(random.table, Op::all_gather, {1, 4}, [&](const Choice& c) { return random.can(c); });
    std::vector<const Cell*> rows;
    for (const Cell& row : random.table.cells()) {
      if (best_of(row, random)) rows.push_back(&row);
    }
    RC_ASSERT(chosen.ranges.size() <= fewest(random, rows, 0));
  }));
}

TEST(Choose, LeavesWhatIsNotToldApartToTheLibraryThatCarriesTheRest) {
  Table table;
  const auto row = [&](Op op, std::int64_t bytes, double mpi, double ucx, double reach) {
    table.put(
        cell(op, {2, 2}, bytes, {timing("shm+mpi", "native", mpi, reach), timing("shm+ucx", "native", ucx, reach)}));
  };
  row(Op::all_gather, 1 << 20, 105, 100, 0.1);  // a tie
  row(Op::broadcast, 1 << 20, 105, 100, 0.01);  // clear
  EXPECT_EQ(ask(table, Op::all_gather, {2, 2}).ranges.front().route.backend, "shm+ucx") << "nothing speaks for mpi yet";
  row(Op::all_to_all, 1 << 20, 100, 150, 0.01);
  EXPECT_EQ(ask(table, Op::all_gather, {2, 2}).ranges.front().route.backend, "shm+mpi");
  EXPECT_EQ(ask(table, Op::broadcast, {2, 2}).ranges.front().route.backend, "shm+ucx");
  table.put(cell(Op::all_reduce, {2, 2}, 64, {timing("ucx", "ring", 100, 0), timing("mpi", "ring", 160, 0)}));
  EXPECT_EQ(ask(table, Op::all_gather, {2, 2}).ranges.front().route.backend, "shm+ucx")
      << "the halves between hosts count together";
  for (const std::int64_t bytes : {64, 1024, 1 << 14}) {  // missing from these rows, since it was far behind
    table.put(cell(Op::reduce_scatter, {2, 2}, bytes, {timing("mpi", "ring", 100, 0)}));
  }
  EXPECT_EQ(ask(table, Op::all_gather, {2, 2}).ranges.front().route.backend, "shm+mpi");
}

TEST(Choose, TakesASplitOnlyWhereItIsSurelyFasterThanEveryLibrary) {
  Table table;
  const auto row = [&](std::int64_t bytes, double split, double reach) {
    table.put(cell(Op::all_reduce, {1, 4}, bytes,
                   {timing("shm", "native", 100, 0.05), timing("ucx", "ring", 130, 0.05),
                    timing("shm|ucx", "share75", split, reach)}));
  };
  row(1 << 20, 93, 0.04);   // faster in the median, but the intervals overlap
  row(16 << 20, 80, 0.04);  // 83.2 against 95
  const Chosen chosen = choose(table, Op::all_reduce, Memory::host, DTypeClass::floating, {1, 4}, any_route);
  ASSERT_EQ(chosen.ranges.size(), 2u);
  EXPECT_EQ(chosen.ranges[0].route.backend, "shm");
  EXPECT_EQ(chosen.ranges[1].route.backend, "shm|ucx");
  EXPECT_EQ(chosen.ranges[1].route.algorithm, "share75");
  const auto without_ucx = [](const Choice& route) { return route.backend == "shm"; };
  EXPECT_EQ(choose(table, Op::all_reduce, Memory::host, DTypeClass::floating, {1, 4}, without_ucx).ranges.size(), 1u);
}

TEST(Choose, KeepsSplitsToLargeTensorsWhereSmallOnesWereNotMeasured) {
  Table table;
  table.put(cell(Op::all_reduce, {2, 1}, 4 << 20,
                 {timing("ucx|gloo", "share50", 50, 0.05), timing("gloo", "native", 90, 0.05)}));
  const Chosen chosen = ask(table, Op::all_reduce, {2, 1});
  ASSERT_EQ(chosen.ranges.size(), 2u);
  EXPECT_EQ(chosen.ranges[0].route.backend, "gloo");
  EXPECT_EQ(chosen.ranges[0].to + 1, chosen.ranges[1].from);
  EXPECT_EQ(chosen.ranges[1].from, least_split_bytes);
  EXPECT_EQ(chosen.ranges[1].route.backend, "ucx|gloo");
}

TEST(Choose, TakesTheNearestShapeOfItsKind) {
  Table table;
  for (const Shape shape : {Shape{1, 2}, Shape{1, 8}, Shape{2, 1}, Shape{4, 4}}) {
    table.put(cell(Op::broadcast, shape, 64, {timing(shape.hosts == 1 ? "shm" : "mpi", text(shape), 1)}));
  }
  const auto nearest = [&](Shape shape) { return ask(table, Op::broadcast, shape).shape; };
  EXPECT_EQ(nearest({1, 2}), (Shape{1, 2}));
  EXPECT_EQ(nearest({1, 3}), (Shape{1, 2}));
  EXPECT_EQ(nearest({1, 100}), (Shape{1, 8}));
  EXPECT_EQ(nearest({64, 4}), (Shape{4, 4}));
  EXPECT_EQ(nearest({8, 1}), (Shape{2, 1}));
  EXPECT_TRUE(ask(small_table(), Op::all_reduce, {2, 2}).ranges.empty()) << "rows of one host say nothing of a network";
}

TEST(Choose, TakesCompressedRoutesOnlyWherePermitted) {
  Table table;
  for (const std::int64_t bytes : {1024, 1 << 20}) {
    table.put(cell(Op::all_reduce, {2, 1}, bytes,
                   {timing("mpi", "+int4", 10), timing("mpi", "+int8", 20), timing("mpi", "native", 100)}));
  }
  const auto taken_with = [&](const char* allowed) {
    const compress::Permission permission = *allowed ? compress::Permission::parse(allowed) : compress::Permission();
    return taken(choose(table, Op::all_reduce, Memory::host, DTypeClass::floating, {2, 1}, any_route, permission),
                 1 << 20);
  };
  EXPECT_EQ(taken_with(""), "mpi/native");
  EXPECT_EQ(taken_with("int8"), "mpi/+int8");
  EXPECT_EQ(taken_with("bf16"), "mpi/native") << "allowed, but not measured";
  EXPECT_EQ(taken_with("error:0.01"), "mpi/+int8") << "int4 may lose 7 % of a block's largest value";
  EXPECT_EQ(taken_with("error:0.1"), "mpi/+int4");
}

TEST(Choose, BordersLieInTheMiddleByRatio) {
  Table table;
  table.put(cell(Op::broadcast, {1, 2}, 1024, {timing("shm", "a", 1), timing("shm", "b", 9)}));
  table.put(cell(Op::broadcast, {1, 2}, 4096, {timing("shm", "a", 9), timing("shm", "b", 1)}));
  const Chosen chosen = ask(table, Op::broadcast, {1, 2});
  EXPECT_EQ(taken(chosen, 0), "shm/a");
  EXPECT_EQ(taken(chosen, 2048), "shm/a");
  EXPECT_EQ(taken(chosen, 2049), "shm/b");
  EXPECT_EQ(taken(chosen, INT64_MAX), "shm/b");
  EXPECT_EQ(nearest_size(chosen.cells, 2048)->key.bytes, 1024);
  EXPECT_EQ(nearest_size(chosen.cells, 2049)->key.bytes, 4096);
}

TEST(Choose, SendsTakeOneRouteForAllSizes) {
  Table table;
  table.put(cell(Op::send, {1, 2}, 4, {timing("a", "native", 1), timing("b", "native", 1.1)}));
  table.put(cell(Op::send, {1, 2}, 1 << 20, {timing("a", "native", 300), timing("b", "native", 100)}));
  const Chosen chosen = ask(table, Op::recv, {1, 2});
  ASSERT_EQ(chosen.ranges.size(), 1u);
  EXPECT_EQ(chosen.ranges.front().route.backend, "b");
}

TEST(Choose, OneDisturbedRowDoesNotDecideForMessages) {
  Table table;
  for (const std::int64_t bytes : {4, 64, 1024}) {
    table.put(cell(Op::send, {1, 2}, bytes, {timing("shm", "native", 1, 0.02), timing("mpi", "native", 1.3, 0.02)}));
  }
  // Intervals overlap
  table.put(cell(Op::send, {1, 2}, 4 << 20, {timing("mpi", "native", 900, 0.3), timing("shm", "native", 2700, 0.7)}));
  EXPECT_EQ(ask(table, Op::send, {1, 2}).ranges.front().route.backend, "shm");
  table.put(cell(Op::send, {1, 2}, 16 << 20, {timing("mpi", "native", 900, 0.02)}));  // missing from this row
  EXPECT_EQ(ask(table, Op::send, {1, 2}).ranges.front().route.backend, "mpi")
      << "so far behind that it was not measured";
  for (const std::int64_t bytes : {16, 256, 4096, 16384}) {
    table.put(cell(Op::send, {1, 2}, bytes, {timing("shm", "native", 1, 0.02), timing("mpi", "native", 1.6, 0.02)}));
  }
  EXPECT_EQ(ask(table, Op::send, {1, 2}).ranges.front().route.backend, "shm") << "one such row is outweighed by many";
}

TEST(Choose, AnotherClassOfTypesStandsIn) {
  const Chosen chosen = choose(small_table(), Op::all_reduce, Memory::host, DTypeClass::half, {1, 2}, any_route);
  EXPECT_EQ(chosen.dtype, DTypeClass::floating);
  EXPECT_FALSE(chosen.ranges.empty());
  EXPECT_TRUE(
      choose(small_table(), Op::all_reduce, Memory::cuda, DTypeClass::floating, {1, 2}, any_route).ranges.empty());
}

TEST(ChooseForAStep, TakesTheStepsRoutesBeforeThoseOfOperationsAlone) {
  const Table table = tuned_table();
  const Chosen reduce = choose(table, Op::all_reduce, Memory::host, DTypeClass::floating, {1, 2}, any_route);
  ASSERT_EQ(reduce.ranges.size(), 2u);
  EXPECT_TRUE(reduce.by_step);
  EXPECT_EQ(reduce.ranges[0].route.backend, "mpi");
  EXPECT_EQ(reduce.ranges[1].route.algorithm, "ring");
  // Nearest class and shape
  const Chosen half = choose(table, Op::all_reduce, Memory::host, DTypeClass::half, {1, 4}, any_route);
  EXPECT_TRUE(half.by_step);
  // Never one host for several
  EXPECT_FALSE(choose(table, Op::all_reduce, Memory::host, DTypeClass::floating, {2, 2}, any_route).by_step);
  EXPECT_FALSE(choose(table, Op::all_reduce, Memory::cuda, DTypeClass::floating, {1, 2}, any_route).by_step);
  const auto no_mpi = [](const Choice& choice) { return choice.backend != "mpi"; };
  const Chosen without = choose(table, Op::all_reduce, Memory::host, DTypeClass::floating, {1, 2}, no_mpi);
  EXPECT_FALSE(without.by_step);
  EXPECT_EQ(without.ranges.front().route.backend, "shm");
}

TEST(ChooseForAStep, ATableOfOneLibraryNamesItForEveryOperation) {
  const Table table = tuned_table("mpi");
  for (const Op op : {Op::all_reduce, Op::all_to_all, Op::broadcast, Op::send, Op::all_to_allv}) {
    for (const Shape shape : {Shape{1, 2}, Shape{4, 2}}) {
      const Chosen chosen = choose(table, op, Memory::host, class_of(op, DType::f32), shape, any_route);
      ASSERT_FALSE(chosen.ranges.empty());
      for (const SizeRange& range : chosen.ranges) EXPECT_EQ(range.route.backend, "mpi") << name(op);
    }
  }
}

TEST(ChooseForAStep, OtherOperationsStayWithTheStepsBackends) {
  Table table = tuned_table();
  table.put(cell(Op::broadcast, {1, 2}, 64, {timing("gloo", "native", 1), timing("shm", "native", 2)}));
  const Chosen chosen = choose(table, Op::broadcast, Memory::host, DTypeClass::any, {1, 2}, any_route);
  EXPECT_EQ(chosen.ranges.front().route.backend, "shm");  // gloo would have to be opened for it
}

// What an operation over a library costs those of other libraries counts as its own time.
TEST(Choose, ChargesALibraryForMixing) {
  Table table;
  table.put(cell(Op::all_reduce, {2, 2}, 1024,
                 {timing("gloo", "native", 50), timing("shm+gloo", "native", 60), timing("mpi", "native", 70)}));
  table.put(cell(Op::all_reduce, {2, 2}, 1 << 20, {timing("gloo", "native", 500), timing("mpi", "native", 900)}));
  const auto chosen = [&] {
    std::vector<std::string> names;
    for (const SizeRange& range :
         choose(table, Op::all_reduce, Memory::host, DTypeClass::floating, {2, 2}, any_route).ranges)
      names.push_back(range.route.backend);
    return names;
  };
  EXPECT_EQ(chosen(), std::vector<std::string>{"gloo"});
  table.put(MixingCost{Memory::host, {2, 2}, "gloo", 40});
  EXPECT_EQ(chosen(), (std::vector<std::string>{"mpi", "gloo"})) << "where it gains more than it costs, it stays";
  table.put(MixingCost{Memory::host, {2, 2}, "gloo", 1000});
  EXPECT_EQ(chosen(), std::vector<std::string>{"mpi"});
}

TEST(ChooseOfAStep, ACommThatCannotTakeAPairTakesTheHalfThatServesIt) {
  Table table = tuned_table();
  table.step->shape = {2, 2};
  table.step->routes = {{Op::all_reduce, DTypeClass::floating, {2, 2}, 0, 4095, {"mpi", "native"}},
                        {Op::all_reduce, DTypeClass::floating, {2, 2}, 4096, INT64_MAX, {"shm+mpi", "native"}}};
  const Usable no_pairs = [](const Choice& route) { return !is_pair(route.backend); };
  const auto route_of = [&](Op op, const Usable& usable, std::int64_t bytes) {
    const Chosen chosen = choose(table, op, Memory::host, class_of(op, DType::f32), {2, 2}, usable);
    EXPECT_TRUE(chosen.by_step);
    return chosen.at(bytes)->route;
  };
  EXPECT_EQ(route_of(Op::all_reduce, any_route, 1 << 20), (Choice{"shm+mpi", "native"}));
  EXPECT_EQ(route_of(Op::all_reduce, no_pairs, 1 << 20), (Choice{"mpi", "native"}));
  EXPECT_EQ(route_of(Op::all_reduce, no_pairs, 64), (Choice{"mpi", "native"}));
  table.step->library = "shm+mpi";  // for every other operation too
  EXPECT_EQ(route_of(Op::broadcast, any_route, 64), (Choice{"shm+mpi", "native"}));
  EXPECT_EQ(route_of(Op::broadcast, no_pairs, 64), (Choice{"mpi", "native"}));
}

TEST(NearestShape, IsOfItsKindAndNearByRatio) {
  const std::vector<Shape> shapes{{2, 4}, {1, 4}, {4, 1}};
  EXPECT_EQ(*nearest(shapes, {1, 2}), (Shape{1, 4}));
  EXPECT_EQ(*nearest(shapes, {8, 1}), (Shape{4, 1}));
  EXPECT_EQ(*nearest(shapes, {2, 2}), (Shape{2, 4}));
  EXPECT_EQ(nearest({{2, 4}}, {1, 2}), nullptr);  // rows of several hosts say nothing about one
}

}  // namespace
}  // namespace medley::route
