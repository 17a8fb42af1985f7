#include "tune/rank_setup.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <medley/error.hpp>

#include "bootstrap/binding.hpp"
#include "bootstrap/host.hpp"
#include "comm/backend_loader.hpp"
#include "device/rank_device.hpp"
#include "tune/placement.hpp"

namespace medley::tune {

ContextOptions context_for(std::vector<std::string> backends, Memory memory) {
  ContextOptions options;
  options.backends = std::move(backends);
  options.hierarchical = options.backends.empty();
  if (memory == Memory::host) return options;
  try {
    options.device = core::rank_device().index;
  } catch (const Error& error) {
    throw Error(ErrorKind::invalid, fmt::format("--memory cuda: {}", error.what()));
  }
  if (options.backends == std::vector<std::string>{"nccl"}) {
    for (const auto& known : core::known_backends()) {
      const bool serves_all = known->name() == "shm" || known->name() == "gloo";  // without a launcher of their own
      if (serves_all && known->unavailable().empty()) options.backends.push_back(known->name());
    }
  }
  return options;
}

void bind_to_core(Context& context) {
  const std::vector<Placement> all = placement_of_all(context.world());
  const Placement& mine = all[static_cast<std::size_t>(context.rank())];
  // Launchers may have given several ranks the cores of a socket: among those with the same cores each takes
  // another.
  const bool overlaps = std::any_of(all.begin(), all.end(), [&](const Placement& other) {
    cpu_set_t common;
    CPU_AND(&common, &mine.cores, &other.cores);
    return other.machine == mine.machine && !(other == mine) && CPU_COUNT(&common) > 0;
  });
  if (CPU_COUNT(&mine.cores) == 0 || overlaps || std::count(all.begin(), all.end(), mine) > usable_cores()) return;
  const auto place = static_cast<std::size_t>(std::count(all.begin(), all.begin() + context.rank(), mine));
  run_on(one_core(binding_order(core_mask())[place]));
}

BoundToCore::BoundToCore(Context& context) : before_(core_mask()) { bind_to_core(context); }

BoundToCore::~BoundToCore() { run_on(before_); }

std::vector<std::string> available_backends(const Context& context) {
  std::vector<std::string> names;
  for (const BackendInfo& backend : context.backends()) {
    if (backend.available) names.push_back(backend.name);
  }
  return names;
}

std::vector<std::string> without_auto(std::vector<std::string> backends) {
  std::erase(backends, "auto");
  return backends;
}

std::vector<std::string> backends_to_open(const std::vector<std::string>& listed) {
  return listed == std::vector<std::string>{"auto"} ? listed : without_auto(listed);
}

}  // namespace medley::tune
