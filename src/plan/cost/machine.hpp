// GPU, links and hosts: what the cost model knows of a machine. Read from a TOML file or built in by name;
// used by `medley plan --machine` and everything that turns a schedule into time.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plan/cost/constants.hpp"
#include "shape/gpu.hpp"

namespace medley::plan {

/// One kind of wire. Bandwidth is per direction.
struct Link {
  double latency_us = 0;  ///< of one step of a collective
  double gb_per_s = 0;    ///< inside: per GPU; between hosts: per host, all its adapters together
};

struct Machine {
  std::string name;
  shape::Gpu gpu;  ///< of one rank: where `gpu_share` is below 1 its rates are that part of the table's
  double gpu_share = 1;
  int gpus_per_host = 1;
  double memory_gb = 0;  ///< of one GPU
  Link inside, between;
  CostConstants constants;  ///< the defaults, unless the file has a table [constants]
};

/// Names of the machines that are compiled in.
std::vector<std::string_view> machine_names();

/// The built-in machine of that name, or the TOML file at that path. Throws Error(invalid) naming file, key
/// and value.
Machine find_machine(const std::string& name_or_path);

/// A machine from the text of a TOML file; `source` opens the error messages.
Machine parse_machine(std::string_view text, const std::string& source);

}  // namespace medley::plan
