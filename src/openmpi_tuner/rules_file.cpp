#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <medley/error.hpp>

#include "openmpi_tuner/sweep.hpp"

namespace medley::openmpi_tuner {
namespace {

/// Open MPI's numbers of its collectives in a rules file, the same in versions 2 to 5.
const std::map<std::string, int>& numbers() {
  static const std::map<std::string, int> all = {{"allgather", 0},
                                                 {"allreduce", 2},
                                                 {"alltoall", 3},
                                                 {"bcast", 7},
                                                 {"gather", 9},
                                                 {"reduce", 11},
                                                 {"reduce_scatter_block", 13},
                                                 {"scatter", 15}};
  return all;
}

/// One size from which on an algorithm is used.
struct Rule {
  std::int64_t from;
  Algorithm algorithm;
  std::string why;
};

/// By size; neighbours with the same algorithm are one. The border between two sizes is their geometric mean, as in
/// route tables.
std::vector<Rule> rules_of(const std::vector<const Cell*>& cells) {
  std::vector<Rule> rules;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const Timing& timing = best(*cells[i]);
    if (!rules.empty() && rules.back().algorithm.number == timing.algorithm.number) continue;
    const double border =
        i == 0 ? 0 : std::sqrt(static_cast<double>(cells[i - 1]->bytes) * static_cast<double>(cells[i]->bytes)) + 1;
    const std::string why = timing.algorithm.number == 0
                                ? std::string("Open MPI decides")
                                : fmt::format("{}, {:.2f}x Open MPI's own choice at {} bytes", timing.algorithm.name,
                                              cells[i]->timings.front().median_us / timing.median_us, cells[i]->bytes);
    rules.push_back({static_cast<std::int64_t>(border), timing.algorithm, why});
  }
  return rules;
}

}  // namespace

const std::vector<std::string>& all_collectives() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out;
    for (const auto& [name, number] : numbers()) out.push_back(name);
    return out;
  }();
  return names;
}

const Timing& best(const Cell& cell) {
  const Timing& own = cell.timings.front();
  const Timing* fastest = &own;
  for (const Timing& timing : cell.timings) {
    const bool clearly = timing.median_us < 0.95 * own.median_us && timing.high_us < own.low_us;
    if (clearly && timing.median_us < fastest->median_us) fastest = &timing;
  }
  return *fastest;
}

std::string rules_file(const SweepResult& result) {
  std::map<int, std::vector<const Cell*>> by_collective;
  for (const Cell& cell : result.cells) by_collective[numbers().at(cell.collective)].push_back(&cell);
  if (by_collective.empty()) throw Error(ErrorKind::invalid, "nothing was measured, so there are no rules to write");
  const int ranks = result.cells.front().ranks;
  std::string text = fmt::format(
      "# Measured by medley tune --export openmpi on {} ranks of {}.\n"
      "# mpirun --mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_dynamic_rules_filename FILE …\n"
      "{} # collectives\n",
      ranks, result.library, by_collective.size());
  for (auto& [number, cells] : by_collective) {
    std::sort(cells.begin(), cells.end(), [](const Cell* a, const Cell* b) { return a->bytes < b->bytes; });
    const std::vector<Rule> rules = rules_of(cells);
    text += fmt::format("{} # {}\n2 # communicator sizes\n{} # this one\n{} # sizes\n", number,
                        cells.front()->collective, ranks, rules.size());
    for (const Rule& rule : rules) text += fmt::format("{} {} 0 0 # {}\n", rule.from, rule.algorithm.number, rule.why);
    text += fmt::format("{} # and larger ones\n1 # size\n0 0 0 0 # Open MPI decides\n", ranks + 1);
  }
  return text;
}

}  // namespace medley::openmpi_tuner
