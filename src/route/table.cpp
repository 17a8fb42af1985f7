#include "route/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <medley/error.hpp>
#include <tuple>

#include "route/pair_name.hpp"

namespace medley::route {
namespace {

constexpr std::array<std::string_view, dtype_class_count> class_names = {"any", "float", "half", "integer"};

void sort_routes(Cell& cell) {
  std::stable_sort(cell.routes.begin(), cell.routes.end(),
                   [](const Timing& a, const Timing& b) { return a.median_us < b.median_us; });
}

}  // namespace

std::string_view name(DTypeClass dtype) noexcept { return class_names[static_cast<std::size_t>(dtype)]; }

std::string text(const Shape& shape) {
  return fmt::format("{} host{} x {} rank{}", shape.hosts, shape.hosts == 1 ? "" : "s", shape.ranks_per_host,
                     shape.ranks_per_host == 1 ? "" : "s");
}

const Timing* Cell::find(const Choice& route) const noexcept {
  for (const Timing& timing : routes) {
    if (timing.route == route) return &timing;
  }
  return nullptr;
}

const Cell* Table::find(const Key& key) const noexcept {
  const auto at =
      std::lower_bound(cells_.begin(), cells_.end(), key, [](const Cell& c, const Key& k) { return c.key < k; });
  return at != cells_.end() && at->key == key ? &*at : nullptr;
}

void Table::sort() {
  std::stable_sort(cells_.begin(), cells_.end(), [](const Cell& a, const Cell& b) { return a.key < b.key; });
  for (Cell& cell : cells_) sort_routes(cell);
}

void Table::put(Cell cell) {
  sort_routes(cell);
  const auto at =
      std::lower_bound(cells_.begin(), cells_.end(), cell.key, [](const Cell& c, const Key& k) { return c.key < k; });
  if (at != cells_.end() && at->key == cell.key) {
    *at = std::move(cell);
  } else {
    cells_.insert(at, std::move(cell));
  }
}

std::string hash_of(std::string_view text) {
  std::uint64_t value = 0xcbf29ce484222325u;  // FNV-1a
  for (const char c : text) value = (value ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return fmt::format("{:016x}", value);
}

std::string Table::hash() const { return hash_of(text()); }

std::filesystem::path cached_table() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache && *cache == '/') return std::filesystem::path(cache) / "medley" / "routes.json";
  const char* home = std::getenv("HOME");
  if (!home || *home != '/') return {};
  return std::filesystem::path(home) / ".cache" / "medley" / "routes.json";
}

std::filesystem::path default_table() {
  if (const char* named = std::getenv("MEDLEY_TABLE")) return named;
  return cached_table();
}

std::filesystem::path table_to_read(const std::string& named) {
  if (!named.empty()) return named;
  const std::filesystem::path file = default_table();
  std::error_code none;
  if (file.empty() || !std::filesystem::exists(file, none)) {
    const char* const variable = std::getenv("MEDLEY_TABLE");
    if (variable && file.empty())
      throw Error(ErrorKind::invalid, "MEDLEY_TABLE is empty, so no route table is read: name one with --table");
    if (variable)
      throw Error(ErrorKind::invalid,
                  fmt::format("MEDLEY_TABLE names {}, which does not exist: medley tune -o {} writes it", file.string(),
                              file.string()));
    throw Error(ErrorKind::invalid,
                fmt::format("there is no route table{}: medley tune writes one, and --table names another",
                            file.empty() ? "" : fmt::format(" {}", file.string())));
  }
  return file;
}

std::int64_t FusionRow::limit() const noexcept {
  std::int64_t largest = 0;
  for (const FusionTiming& timing : sizes) {
    if (timing.fused_us > timing.separate_us) break;
    largest = timing.bytes;
  }
  return largest;
}

void Table::put(FusionRow row) {
  std::sort(row.sizes.begin(), row.sizes.end(),
            [](const FusionTiming& a, const FusionTiming& b) { return a.bytes < b.bytes; });
  const auto key = [](const FusionRow& one) {
    return std::tuple(one.memory, one.shape, std::string_view(one.backend));
  };
  const auto at = std::lower_bound(fusion_.begin(), fusion_.end(), row,
                                   [&](const FusionRow& a, const FusionRow& b) { return key(a) < key(b); });
  if (at != fusion_.end() && key(*at) == key(row)) {
    *at = std::move(row);
  } else {
    fusion_.insert(at, std::move(row));
  }
}

std::optional<std::int64_t> Table::fusion_limit(Memory memory, const Shape& shape,
                                                std::string_view backend) const noexcept {
  for (const FusionRow& row : fusion_) {
    if (row.memory == memory && row.shape == shape && row.backend == backend) return row.limit();
  }
  return std::nullopt;
}

void Table::put(MixingCost cost) {
  const auto key = [](const MixingCost& one) { return std::tie(one.memory, one.shape, one.library); };
  const auto at = std::lower_bound(mixing_.begin(), mixing_.end(), cost,
                                   [&](const MixingCost& a, const MixingCost& b) { return key(a) < key(b); });
  if (at != mixing_.end() && key(*at) == key(cost)) {
    *at = std::move(cost);
  } else {
    mixing_.insert(at, std::move(cost));
  }
}

double Table::mixing_us(Memory memory, const Shape& shape, std::string_view backend) const noexcept {
  double us = 0;
  for (const std::string_view half : halves_of(backend)) {
    for (const MixingCost& cost : mixing_) {
      if (cost.memory == memory && cost.shape == shape && cost.library == half) us = std::max(us, cost.us);
    }
  }
  return us;
}

}  // namespace medley::route
