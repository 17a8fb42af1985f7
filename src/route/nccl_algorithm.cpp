#include "route/nccl_algorithm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace medley::route {
namespace {

constexpr int most_channels = 1024;  // far beyond NCCL's limit, which differs between versions

template <class Names>
int index_of(const Names& names, std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? -1 : static_cast<int>(found - names.begin());
}

/// The last word after an underscore, removed from `name`.
std::string_view take_last(std::string_view& name) {
  const std::size_t at = name.rfind('_');
  if (at == name.npos) return {};
  const std::string_view last = name.substr(at + 1);
  name = name.substr(0, at);
  return last;
}

}  // namespace

std::optional<NcclAlgorithm> parse_nccl_algorithm(std::string_view name) {
  NcclAlgorithm parsed;
  std::string_view last = take_last(name);
  if (last.size() > 1 && last.front() == 'c' && last[1] != '0') {
    const auto [end, error] = std::from_chars(last.data() + 1, last.data() + last.size(), parsed.channels);
    if (error != std::errc{} || end != last.data() + last.size() || parsed.channels > most_channels) return {};
    last = take_last(name);
  }
  parsed.protocol = index_of(nccl_protocols, last);
  parsed.algorithm = index_of(nccl_algorithms, name);
  if (parsed.protocol < 0 || parsed.algorithm < 0) return {};
  return parsed;
}

std::string name(const NcclAlgorithm& algorithm) {
  const std::string base = fmt::format("{}_{}", nccl_algorithms[static_cast<std::size_t>(algorithm.algorithm)],
                                       nccl_protocols[static_cast<std::size_t>(algorithm.protocol)]);
  return algorithm.channels == 0 ? base : fmt::format("{}_c{}", base, algorithm.channels);
}

}  // namespace medley::route
