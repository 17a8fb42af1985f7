// GPU, links and hosts: a machine as the cost model sees it. Read from a TOML file or built in by name; used
// by `medley plan --machine` and everything that turns a schedule into time.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cost/constants.hpp"
#include "cost/gpu.hpp"

namespace medley::cost {

/// One kind of wire. Bandwidth is per direction.
struct Link {
  double latency_us = 0;  ///< per step of a collective
  double gb_per_s = 0;    ///< inside: per GPU; between hosts: per host, all adapters together
  /// Between hosts: the least time from one message of a ring to the next on the same connection. Every
  /// connection of a ring of n ranks carries n - 1 blocks, one after another.
  double message_gap_us = 0;
};

/// A level of the network above the hosts: leaf or pod, then spine. A unit consists of consecutive units of
/// the level below.
struct Level {
  std::string name;
  int hosts = 1;                ///< units of the level below in one unit (hosts, for the first level)
  double oversubscription = 1;  ///< the sum of what its members could send, divided by what can leave a unit
  double latency_us = 0;        ///< added when a group crosses it
};

struct Machine {
  std::string name;
  Gpu gpu;  ///< of one rank: with `gpu_share` below 1, its rates are that share of the table's
  double gpu_share = 1;
  int gpus_per_host = 1;
  double memory_gb = 0;  ///< of one GPU
  Link inside, between;
  double nvls_gb_per_s = 0;    ///< of an all_reduce that the switch computes (NVLS), per tensor byte; 0: it cannot
  std::vector<Level> above{};  ///< between hosts, nearest first
  CostConstants constants;     ///< the defaults, unless the file has a [constants] table
};

inline constexpr int machine_format = 1;  ///< of the files, as `format = 1`; docs/formats.md has their history

/// Names of the machines that are compiled in.
std::vector<std::string_view> machine_names();

/// The built-in machine of that name, or the TOML file at that path. Throws Error(invalid) naming file, key
/// and value.
Machine find_machine(const std::string& name_or_path);

/// The built-in machine with this GPU, or hosts of eight of them with its links and one 400 Gb/s adapter
/// each.
Machine machine_with(const Gpu& gpu);

/// A machine from the text of a TOML file; `source` begins error messages.
Machine parse_machine(std::string_view text, const std::string& source);

}  // namespace medley::cost
