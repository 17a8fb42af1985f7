#include "comm/context_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <medley/error.hpp>

#include "base/ranks_text.hpp"

namespace medley::core {
namespace {

std::string shown(const TableOffer& table) {
  return table.hash.empty() ? "none" : fmt::format("{} ({})", table.path, table.hash);
}

}  // namespace

FoundTable find_table(const std::string& asked_for) {
  FoundTable found;
  const char* variable = std::getenv("MEDLEY_TABLE");
  found.path = !asked_for.empty() ? asked_for : variable ? variable : "";
  found.asked = !found.path.empty();
  if (!found.asked) {
    if (variable) return found;
    const auto cached = route::cached_table();
    std::error_code none;
    if (cached.empty() || !std::filesystem::exists(cached, none)) return found;
    found.path = cached;
  }
  try {
    found.table = route::Table::load(found.path);
  } catch (const std::exception& error) {
    found.problem = error.what();
  }
  return found;
}

TableOffer offer_of(const FoundTable& found) {
  return {.hash = found.table ? found.table->hash() : "",
          .path = found.path,
          .asked = found.asked,
          .problem = found.problem};
}

void agree_on_table(FoundTable& found, const std::vector<TableOffer>& tables) {
  bool asked = false;
  std::vector<int> unreadable, different;
  std::string problem;
  for (std::size_t r = 0; r < tables.size(); ++r) {
    asked = asked || tables[r].asked;
    if (tables[r].hash != tables[0].hash) different.push_back(static_cast<int>(r));
    if (!tables[r].asked || tables[r].problem.empty()) continue;
    if (unreadable.empty()) problem = tables[r].problem;
    unreadable.push_back(static_cast<int>(r));
  }
  if (!unreadable.empty()) {
    throw Error(ErrorKind::invalid,
                tables.size() == 1 ? problem : fmt::format("{} (on {})", problem, ranks_text(unreadable)),
                {.ranks = unreadable});
  }
  if (different.empty()) return;
  if (!asked) {
    found = {};
    return;
  }
  std::vector<int> named{0};
  named.insert(named.end(), different.begin(), different.end());
  throw Error(ErrorKind::mismatch,
              fmt::format("rank 0 has the route table {} but {} ha{} {}; all ranks must have the same",
                          shown(tables[0]), ranks_text(different), different.size() == 1 ? "s" : "ve",
                          shown(tables[static_cast<std::size_t>(different.front())])),
              {.ranks = named});
}

std::string misfit_here(const FoundTable& found, const std::map<std::string, std::unique_ptr<Backend>>& backends) {
  if (!found.table) return {};
  route::Machine here = route::this_machine();
  for (const auto& [name, backend] : backends) {
    if (backend) here.libraries[name] = backend->version();
  }
  return route::misfit(found.table->machine, here);
}

TableInfo settle_table(FoundTable& found, const std::string& misfit) {
  if (!found.table) {
    return {
        .path = {}, .hash = {}, .note = found.problem.empty() ? "no route table: the built-in order" : found.problem};
  }
  if (!misfit.empty() && !found.asked) {
    const std::string note =
        fmt::format("the cached route table {} does not fit ({}): the built-in order; medley tune writes a new one",
                    found.path, misfit);
    found = {};
    return {.path = {}, .hash = {}, .note = note};
  }
  return {
      .path = found.path,
      .hash = found.table->hash(),
      .note = misfit.empty() ? "" : fmt::format("the route table {} is from another machine: {}", found.path, misfit)};
}

}  // namespace medley::core
