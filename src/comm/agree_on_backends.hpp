// What the ranks of a new context tell each other about their backends, before any is made and after, and what follows
// from it on all of them alike. Used by context_backends.cpp.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "comm/context_table.hpp"
#include "comm/needed_backends.hpp"
#include "engine/online_routes.hpp"

namespace medley::core {

/// By backend: why a rank cannot use it; empty if it can.
using Reasons = std::map<std::string, std::string>;

/// What a rank has and wants, before it makes any backend.
struct RankOffer {
  std::string host{}, kernel{}, cores{};  ///< where it runs: host_identity(), kernel_identity(), core_mask()
  std::vector<std::string> wanted{};      ///< the backends that the program lists
  Reasons reasons{};
  std::set<std::string> last_choices{};  ///< BackendPlugin::last_choice
  std::string job{};                     ///< a name for the job; rank 0's is taken
  std::string rules{};                   ///< with what this build lacks for them
  TableOffer table{};
  std::string cuda{};                        ///< why it has no CUDA device; empty if it has
  bool check = false;                        ///< it wants check mode
  bool hierarchical = false, exact = false;  ///< as in ContextOptions
  std::string online{};                      ///< "1" or "shuffle": it wants routes to be measured in the running job
  std::string trace{};                       ///< of rank 0: why this job cannot record a trace; empty if it can

  nlohmann::json to_json() const;
  static RankOffer from_json(const nlohmann::json& given);
};

/// What a rank has once it has made its backends.
struct OpenedBackends {
  Reasons reasons{};
  std::map<std::string, std::string> abilities{};  ///< by backend: Capabilities::to_text()
  std::string control{};                           ///< the endpoint of its control thread
  std::string token{};   ///< of rank 0: what control threads prove to each other that they know
  std::string misfit{};  ///< misfit_here()

  nlohmann::json to_json() const;
  static OpenedBackends from_json(const nlohmann::json& given);
};

/// Which backends to open. Equal on all ranks.
struct BackendChoice {
  std::vector<std::string> names{};
  bool named = false;              ///< the program lists them, so one that cannot be used is an error
  std::set<std::string> needed{};  ///< needed_backends()
};

/// Throws, on all ranks alike, where ranks want what must be equal and is not, or rank 0 cannot record.
void compare_offers(const std::vector<RankOffer>& offers);

/// The ranks that gave a reason, and the first reason; empty when none did.
std::string who_lacks(const std::vector<RankOffer>& offers, const std::string& name, std::vector<int>& ranks);
std::string who_lacks(const std::vector<OpenedBackends>& opened, const std::string& name, std::vector<int>& ranks);

/// The order of preference if the program lists no backends: `first`, then by name, the plugins' last choices last.
std::vector<std::string> names_of_all(const std::vector<RankOffer>& offers, const std::string& first);

/// What decides which backends to open. The result refers to the offers.
JobFacts facts_of(const std::vector<RankOffer>& offers, const std::vector<std::string>& names, bool only_chosen);

std::vector<TableOffer> tables_of(const std::vector<RankOffer>& offers);
/// What any rank wants, all do.
std::optional<OnlineRoutes::Mode> agreed_online_mode(const std::vector<RankOffer>& offers);
/// Of the first rank that has no CUDA device; empty if all have one.
std::string why_not_all_have_cuda(const std::vector<RankOffer>& offers);
/// Of the first rank whose machine does not fit the route table; empty if all do.
std::string first_misfit(const std::vector<OpenedBackends>& opened);

}  // namespace medley::core
