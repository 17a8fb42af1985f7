#include "comm/needed_backends.hpp"

#include <algorithm>

#include "comm/context_state.hpp"
#include "route/choose.hpp"

namespace medley::core {
namespace {

/// Whether some comm of the job, or one split from it, uses rows of this shape.
bool concerns(const JobFacts& job, const route::Shape& shape) {
  return shape.hosts > 1 ? job.several_hosts : !job.all_alone;
}

/// The backend that an operation without rows takes on comms of several hosts, or of one.
std::string built_in(const JobFacts& job, bool several_hosts) {
  const auto usable = [&](const std::string& name) {
    return job.everywhere(name) && !(several_hosts && name == job.names.front());
  };
  const auto found = std::find_if(job.names.begin(), job.names.end(), usable);
  return found == job.names.end() ? std::string() : *found;
}

/// The backends of all routes that the cells can lead to on the comms of this job.
std::set<std::string> chosen_by_cells(const route::Table& table, const JobFacts& job) {
  std::set<route::Shape> shapes;
  for (const route::Cell& cell : table.cells()) {
    if (cell.key.memory == Memory::host && concerns(job, cell.key.shape)) shapes.insert(cell.key.shape);
  }
  // An operation without rows, in particular on comms of a kind that has none, takes the built-in order.
  std::set<std::string> backends;
  if (!job.all_alone) backends.insert(built_in(job, false));
  if (job.several_hosts) backends.insert(built_in(job, true));
  const auto usable = [&](const Choice& choice) {
    const std::vector<std::string> halves = with_halves({choice.backend});
    return std::all_of(halves.begin(), halves.end(), job.everywhere);
  };
  for (const route::Shape& shape : shapes) {
    for (int op = 0; op < op_count; ++op) {
      for (int dtype = 0; dtype < route::dtype_class_count; ++dtype) {
        for (const bool exact : {false, true}) {
          const route::Chosen chosen = route::choose(table, static_cast<Op>(op), Memory::host,
                                                     static_cast<route::DTypeClass>(dtype), shape, usable, {}, exact);
          for (const route::SizeRange& range : chosen.ranges) backends.insert(range.route.backend);
        }
      }
    }
  }
  backends.erase("");
  return shapes.empty() ? std::set<std::string>{} : backends;
}

}  // namespace

std::set<std::string> needed_backends(const FoundTable& found, const Rules& rules, const JobFacts& job) {
  if (!found.asked || !found.table || job.needs_all) return {};
  const auto& step = found.table->step;
  const bool tuned = step && step->memory == Memory::host && job.several_hosts == (step->shape.hosts > 1);
  if (!tuned && !job.only_chosen) return {};
  std::set<std::string> backends = tuned ? step->backends() : chosen_by_cells(*found.table, job), needed;
  if (backends.empty()) return {};
  for (const Rules::Rule& rule : rules.list()) {
    // auto+int8 leaves the library to the step's table
    if (rule.choice.backend != "auto" || !tuned) backends.insert(rule.choice.backend);
  }
  for (const std::string& name : with_halves({backends.begin(), backends.end()})) {
    // Not what it was tuned with, or a rule for `auto`, which may allow routes that cells do not show
    if (!job.everywhere(name)) return {};
    needed.insert(name);
  }
  return needed;
}

}  // namespace medley::core
