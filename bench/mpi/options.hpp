// The command line of the programs in this folder; the spellings are those of `medley bench`. Parsed by hand
// so that the programs need only a compiler and an MPI.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "measure.hpp"
#include "tune/sizes.hpp"

namespace medley::bench {

/// All that are measured here; the first six unless others are named.
inline constexpr Op known_ops[] = {Op::all_reduce, Op::reduce_scatter, Op::all_gather, Op::all_to_all, Op::broadcast,
                                   Op::barrier,    Op::reduce,         Op::gather,     Op::scatter};

struct Options {
  std::vector<Op> ops{known_ops, known_ops + 6};
  std::vector<std::size_t> sizes = tune::size_ladder(4, std::size_t{64} << 20);
  MeasureOptions measure;
  std::string json = "-";
};

/// The operations measured with a bare MPI program, by the names of `medley bench`.
inline const char* name_of(Op op) {
  switch (op) {
    case Op::all_reduce: return "all_reduce";
    case Op::reduce_scatter: return "reduce_scatter";
    case Op::all_gather: return "all_gather";
    case Op::all_to_all: return "all_to_all";
    case Op::broadcast: return "broadcast";
    case Op::barrier: return "barrier";
    case Op::reduce: return "reduce";
    case Op::gather: return "gather";
    case Op::scatter: return "scatter";
    default: throw std::invalid_argument("an operation that is not measured here");
  }
}

/// Comma-separated names, with or without their underscores.
inline std::vector<Op> parse_ops(std::string_view list) {
  const auto plain = [](std::string text) {
    text.erase(std::remove(text.begin(), text.end(), '_'), text.end());
    return text;
  };
  std::vector<Op> ops;
  while (!list.empty()) {
    const std::string word(list.substr(0, list.find(',')));
    list.remove_prefix(std::min(list.size(), word.size() + 1));
    const auto found = std::find_if(std::begin(known_ops), std::end(known_ops),
                                    [&](Op op) { return plain(name_of(op)) == plain(word); });
    if (found == std::end(known_ops)) throw std::invalid_argument("--op: '" + word + "' is not measured here");
    ops.push_back(*found);
  }
  if (ops.empty()) throw std::invalid_argument("--op: names no operation");
  return ops;
}

/// `4`, `64K`, `1M`, `2G`, in powers of 1024.
inline std::size_t parse_size(const std::string& text) {
  char* end = nullptr;
  const auto number = static_cast<std::size_t>(std::strtoull(text.c_str(), &end, 10));
  const std::string unit(end);
  const std::size_t shift = unit.empty() ? 0 : unit == "K" ? 10 : unit == "M" ? 20 : unit == "G" ? 30 : 64;
  if (end == text.c_str() || text[0] == '-' || shift == 64) {
    throw std::invalid_argument("--sizes: '" + text + "' is not a size such as 4, 64K or 1M");
  }
  return number << shift;
}

inline std::vector<std::size_t> parse_sizes(const std::string& text) {
  const auto colon = text.find(':');
  const std::size_t first = parse_size(text.substr(0, colon));
  const std::size_t last = colon == std::string::npos ? first : parse_size(text.substr(colon + 1));
  // MPI's counts are ints; the comparison ends at 64 MiB.
  if (first > last || last > (std::size_t{1} << 32)) {
    throw std::invalid_argument("--sizes: '" + text + "' must rise and end at 4G or below");
  }
  return tune::size_ladder(first, last);
}

inline Options parse_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    const std::string key = argv[i];
    if (i + 1 == argc) throw std::invalid_argument(key + ": a value is missing");
    const std::string value = argv[i + 1];
    if (key == "--op") {
      options.ops = parse_ops(value);
    } else if (key == "--sizes") {
      options.sizes = parse_sizes(value);
    } else if (key == "--seconds") {
      options.measure.seconds = std::strtod(value.c_str(), nullptr);
      if (!(options.measure.seconds > 0)) throw std::invalid_argument("--seconds: '" + value + "' is not a time");
    } else if (key == "--batch") {
      options.measure.batch = value == "auto" ? 0 : std::atoi(value.c_str());
      if (value != "auto" && options.measure.batch < 1) {
        throw std::invalid_argument("--batch: '" + value + "' is neither a count nor auto");
      }
    } else if (key == "--json") {
      options.json = value;
    } else {
      throw std::invalid_argument(key + ": no such option; there are --op --sizes --seconds --batch --json");
    }
  }
  return options;
}

}  // namespace medley::bench
