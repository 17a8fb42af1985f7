#include "cost/gpu.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <medley/error.hpp>
#include <sstream>

#include "base/closest.hpp"

namespace medley::embedded {
extern const std::string_view gpus_csv;
}
namespace medley::cost {
namespace {

Architecture parse_architecture(std::string_view text) {
  constexpr std::array<std::string_view, 6> names{"volta", "ampere", "ada", "hopper", "blackwell", "cdna"};
  const auto found = std::ranges::find(names, text);
  if (found == names.end())
    throw Error(ErrorKind::invalid, fmt::format("gpus.csv: architecture '{}' is not known", text));
  return static_cast<Architecture>(found - names.begin());
}

std::vector<Gpu> read_table(std::string_view csv) {
  std::vector<Gpu> gpus;
  std::istringstream lines{std::string(csv)};
  std::string line;
  std::getline(lines, line);  // the header
  while (std::getline(lines, line)) {
    if (line.empty()) continue;
    std::vector<std::string> cells;
    std::istringstream row(line);
    // notes come last and may hold commas
    for (std::string cell; cells.size() < 11 && std::getline(row, cell, ',');) cells.push_back(cell);
    std::string notes;
    std::getline(row, notes);
    cells.resize(11);
    const auto number = [&](std::size_t i) { return cells[i].empty() ? 0.0 : std::stod(cells[i]); };
    gpus.push_back({.name = cells[0],
                    .architecture = parse_architecture(cells[9]),
                    .sms = int(number(1)),
                    .boost_mhz = number(2),
                    .bf16_tflops = number(3),
                    .hbm_gb = number(4),
                    .hbm_gb_per_s = number(5),
                    .link_gb_per_s = number(6),
                    .l2_mb = number(7),
                    .measured_tflops = number(8),
                    .power_share = cells[10].empty() ? 1.0 : number(10),
                    .notes = notes});
  }
  return gpus;
}

}  // namespace

const std::vector<Gpu>& all_gpus() {
  static const std::vector<Gpu> gpus = read_table(embedded::gpus_csv);
  return gpus;
}

const Gpu& find_gpu(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Gpu& gpu : all_gpus()) {
    if (gpu.name == name) return gpu;
    names.push_back(gpu.name);
  }
  throw Error(ErrorKind::invalid,
              fmt::format("unknown GPU '{}'{}; known are {}", name, did_you_mean(name, names), fmt::join(names, ", ")));
}

}  // namespace medley::cost
