// What this build of Medley can do on this machine: version, cores, and each backend with the operations that it
// supports natively.
#pragma once

#include <medley/context.hpp>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace medley {

struct BackendAbilities {
  BackendInfo info{};
  std::vector<Memory> memory{};  ///< that it handles
  std::vector<bool> native =
      std::vector<bool>(op_count, false);  ///< by Op, for f32 and sum, in the first memory; the others are filled in
  bool does(Op op) const { return native[static_cast<std::size_t>(op)]; }
};

struct BuildInfo {
  std::string version, host;
  int cores = 1;  ///< that this process may use
  std::vector<BackendAbilities> backends;
};

/// Loads every backend found and makes it once, in a job of one rank.
BuildInfo build_info();

nlohmann::ordered_json to_json(const BuildInfo& info);

}  // namespace medley
