// Which libraries a job needs by its route table and rules, so that the others stay closed: their threads and their
// polling cost time even if nothing is sent over them. Used once, while a context is made; equal on all ranks.
#pragma once

#include <functional>
#include <medley/rules.hpp>
#include <set>
#include <string>
#include <vector>

#include "comm/context_table.hpp"

namespace medley::core {

struct JobFacts {
  bool several_hosts = false;
  bool all_alone = false;            ///< no host has two ranks
  bool needs_all = false;            ///< CUDA tensors may come, or all routes are to be measured
  bool only_chosen = false;          ///< the program asked for the backends that the table chooses ("auto")
  std::vector<std::string> names{};  ///< of the known backends, in the built-in order
  std::function<bool(const std::string&)> everywhere{};  ///< whether every rank has a backend
};

/// Empty: open all, since the table does not say what this job needs. Tables count only if they were requested: those
/// that were tuned for a step on such hosts always, others if the program asked for it.
std::set<std::string> needed_backends(const FoundTable& found, const Rules& rules, const JobFacts& job);

}  // namespace medley::core
