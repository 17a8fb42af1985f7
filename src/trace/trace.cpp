#include "trace/trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <medley/error.hpp>

namespace medley::trace {

std::string_view name(State state) noexcept {
  static constexpr std::array<std::string_view, 4> names = {"issued", "started", "complete", "failed"};
  return names[static_cast<std::size_t>(state)];
}

namespace {
constexpr std::array<std::string_view, field_count> field_names = {"group", "bytes", "dtype", "reduce",  "root",
                                                                   "phase", "async", "order", "rounding"};
}  // namespace

std::string_view name(Field field) noexcept { return field_names[static_cast<std::size_t>(field)]; }

std::optional<Field> parse_field(std::string_view text) noexcept {
  if (text == "peer") return Field::root;
  const auto found = std::find(field_names.begin(), field_names.end(), text);
  if (found == field_names.end()) return std::nullopt;
  return static_cast<Field>(found - field_names.begin());
}

std::uint32_t Trace::name(std::string_view text) {
  if (text.empty()) return 0;
  if (const auto known = name_numbers_.find(text); known != name_numbers_.end()) return known->second;
  const auto number = static_cast<std::uint32_t>(names.size());
  names.emplace_back(text);
  name_numbers_.emplace(text, number);
  return number;
}

std::uint32_t Trace::group(const Group& group) {
  const auto [at, fresh] =
      group_numbers_.emplace(std::pair(group.name, group.ranks), static_cast<std::uint32_t>(groups.size()));
  if (fresh) {
    groups.push_back(group);
    if (groups.back().size == 0) groups.back().size = static_cast<int>(group.ranks.size());
  }
  return at->second;
}

const RankTrace& Trace::rank(int number) const {
  const auto found = std::find_if(ranks.begin(), ranks.end(), [&](const auto& r) { return r.rank == number; });
  if (found == ranks.end()) {
    throw Error(ErrorKind::invalid, fmt::format("{}: there is no trace of rank {}", source, number));
  }
  return *found;
}

ScopeParts parts_of_scope(std::string_view scope) noexcept {
  static constexpr std::array<std::string_view, 5> phases = {"forward", "recompute", "backward", "grad_sync",
                                                             "optimizer"};
  const std::size_t slash = scope.find('/');
  const std::string_view first = scope.substr(0, slash);
  if (std::find(phases.begin(), phases.end(), first) == phases.end()) return {{}, scope};
  return {first, slash == std::string_view::npos ? std::string_view{} : scope.substr(slash + 1)};
}

}  // namespace medley::trace
