#include "tune/nccl_variant.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <medley/error.hpp>

#include "base/split.hpp"

namespace medley::tune {
namespace {

/// As NCCL spells its algorithms in NCCL_ALGO, in the order of its numbers.
constexpr std::array nccl_spellings = {"Tree", "Ring", "CollnetDirect", "CollnetChain", "NVLS", "NVLSTree", "PAT"};
constexpr std::array protocol_spellings = {"LL", "LL128", "Simple"};

bool same_letters(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return std::tolower(x) == std::tolower(y); });
}

template <class Spellings>
int index_in(const Spellings& spellings, const char* text) {
  for (std::size_t i = 0; text && i < spellings.size(); ++i) {
    if (same_letters(spellings[i], text)) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace

std::vector<route::NcclAlgorithm> nccl_variants() {
  std::vector<route::NcclAlgorithm> all;
  for (const char* name : {"ring_simple", "ring_ll", "ring_ll128", "tree_simple", "tree_ll", "tree_ll128",
                           "nvls_simple", "nvls_tree_simple", "pat_simple"})
    all.push_back(*route::parse_nccl_algorithm(name));
  return all;
}

std::vector<route::NcclAlgorithm> parse_nccl_variants(const std::string& text) {
  if (text == "all") return nccl_variants();
  std::vector<route::NcclAlgorithm> parsed;
  for (const std::string& word : split(text, ',')) {
    const auto variant = route::parse_nccl_algorithm(word);
    if (!variant || variant->channels != 0) {
      throw Error(
          ErrorKind::invalid,
          fmt::format("--nccl {}: \"{}\" is not ALGORITHM_PROTOCOL with an algorithm of {} and a protocol of {}", text,
                      word, fmt::join(route::nccl_algorithms, ", "), fmt::join(route::nccl_protocols, ", ")));
    }
    parsed.push_back(*variant);
  }
  return parsed;
}

bool serves(const route::NcclAlgorithm& variant, Op op) {
  const std::string_view algorithm = route::nccl_algorithms[static_cast<std::size_t>(variant.algorithm)];
  switch (op) {
    case Op::all_reduce: return algorithm != "pat";
    case Op::broadcast:
    case Op::reduce: return algorithm == "ring";
    case Op::all_gather:
    case Op::reduce_scatter:
      return algorithm == "ring" || algorithm == "pat" || algorithm == "nvls" || algorithm == "collnet_direct";
    default: return false;  // messages, which have no algorithms
  }
}

std::optional<route::NcclAlgorithm> nccl_variant_of_environment() {
  const int algorithm = index_in(nccl_spellings, std::getenv("NCCL_ALGO"));
  const int protocol = index_in(protocol_spellings, std::getenv("NCCL_PROTO"));
  if (algorithm < 0 || protocol < 0) return {};
  return route::NcclAlgorithm{algorithm, protocol, 0};
}

void set_nccl_variant(const route::NcclAlgorithm& variant) {
  setenv("NCCL_ALGO", nccl_spellings[static_cast<std::size_t>(variant.algorithm)], 1);
  setenv("NCCL_PROTO", protocol_spellings[static_cast<std::size_t>(variant.protocol)], 1);
}

}  // namespace medley::tune
