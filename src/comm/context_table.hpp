// Selects a context's route table: the one it was given, MEDLEY_TABLE, or the user's cached one; and checks that all
// ranks have the same. Used once, while a context is made.
#pragma once

#include <map>
#include <medley/backend.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <medley/context.hpp>

#include "route/table.hpp"

namespace medley::core {

/// A table as one rank found it, before the ranks have compared.
struct FoundTable {
  std::optional<route::Table> table{};
  std::string path{};
  bool asked = false;     ///< named by the program or the environment, not just found in the cache
  std::string problem{};  ///< why it could not be read
};

/// Never throws: a rank that cannot read its table must still report that to the others. MEDLEY_TABLE= (empty) means
/// none.
FoundTable find_table(const std::string& asked_for);

/// What a rank tells the others about its table.
struct TableOffer {
  std::string hash{}, path{};  ///< an empty hash: it has none
  bool asked = false;
  std::string problem{};
};
TableOffer offer_of(const FoundTable& found);

/// Throws, on all ranks alike, when a requested table is unreadable or differs on some rank; the error names the ranks.
/// Cached tables that differ are nobody's mistake and are ignored.
void agree_on_table(FoundTable& found, const std::vector<TableOffer>& tables);

/// Why the table does not fit this rank's machine and the versions of its backends; empty if it does.
std::string misfit_here(const FoundTable& found, const std::map<std::string, std::unique_ptr<Backend>>& backends);

/// Ignores a cached table that does not fit some rank, for the reason `misfit` (empty if it fits all); for a requested
/// one, reports what differs.
TableInfo settle_table(FoundTable& found, const std::string& misfit);

}  // namespace medley::core
