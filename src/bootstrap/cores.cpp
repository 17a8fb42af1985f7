// How many cores this process may keep busy: affinity mask and cgroup quotas.
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>
#include <thread>
#include <vector>

#include "bootstrap/host.hpp"

namespace medley {
namespace {

/// One bit per core, core 0 first; all set when the system reports no mask.
std::vector<bool> affinity() {
  // cpu_set_t holds 1024 cores; larger machines need a larger mask.
  for (int cores = CPU_SETSIZE; cores <= 65536; cores *= 4) {
    std::vector<unsigned long> mask(static_cast<std::size_t>(cores) / (8 * sizeof(unsigned long)));
    const std::size_t bytes = mask.size() * sizeof(unsigned long);
    auto* set = reinterpret_cast<cpu_set_t*>(mask.data());
    if (sched_getaffinity(0, bytes, set) != 0) continue;
    std::vector<bool> bits;
    for (int core = 0; core < cores; ++core) {
      if (!CPU_ISSET_S(static_cast<std::size_t>(core), bytes, set)) continue;
      bits.resize(static_cast<std::size_t>(core) + 1);
      bits.back() = true;
    }
    return bits;
  }
  return std::vector<bool>(std::max(1u, std::thread::hardware_concurrency()), true);
}

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// cgroup v2: "150000 100000" is one and a half cores, "max 100000" no limit.
std::optional<double> quota_v2(const std::string& folder) {
  std::istringstream text(text_of(folder + "/cpu.max"));
  double quota = 0, period = 0;
  if (text >> quota >> period && quota > 0 && period > 0) return quota / period;
  return std::nullopt;
}

// cgroup v1: two files, -1 is no limit.
std::optional<double> quota_v1(const std::string& folder) {
  std::istringstream quota_text(text_of(folder + "/cpu.cfs_quota_us")),
      period_text(text_of(folder + "/cpu.cfs_period_us"));
  double quota = 0, period = 0;
  if (quota_text >> quota && period_text >> period && quota > 0 && period > 0) return quota / period;
  return std::nullopt;
}

// Every cgroup from the process's own up to the root may set a limit. Inside a container the path is often
// that of the host, and only the root exists; missing folders set no limit.
template <typename Quota>
void limit(double& cores, const std::string& root, std::string path, Quota quota) {
  for (;;) {
    if (auto found = quota(root + path)) cores = std::min(cores, *found);
    if (path.empty() || path == "/") return;
    path.erase(path.rfind('/'));
  }
}

/// The number of cores in the union of the masks.
int count_of_any(const std::vector<std::string>& masks) {
  std::string all;
  for (const std::string& mask : masks) {
    all.resize(std::max(all.size(), mask.size()), '0');
    for (std::size_t i = 0; i < mask.size(); ++i) all[i] = std::max(all[i], mask[i]);
  }
  return std::max(1, static_cast<int>(std::count(all.begin(), all.end(), '1')));
}

}  // namespace

int usable_cores(int affinity, const std::string& own_cgroups_file, const std::string& cgroup_root) {
  double cores = affinity;
  std::istringstream lines(text_of(own_cgroups_file));
  for (std::string line; std::getline(lines, line);) {  // "0::/path" is v2, "4:cpu,cpuacct:/path" v1
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos || line.find('/', second) != second + 1) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string path = line.substr(second + 1);
    if (controllers == ",,") limit(cores, cgroup_root, path, quota_v2);
    if (controllers.find(",cpu,") != controllers.npos) {
      limit(cores, cgroup_root + "/cpu", path, quota_v1);
      limit(cores, cgroup_root + "/cpu,cpuacct", path, quota_v1);
    }
  }
  return std::max(1, static_cast<int>(cores));
}

int usable_cores() { return cores_together({core_mask()}); }

std::string core_mask() {
  std::string text;
  for (const bool bit : affinity()) text += bit ? '1' : '0';
  return text;
}

int cores_together(const std::vector<std::string>& masks) {
  return usable_cores(count_of_any(masks), "/proc/self/cgroup", "/sys/fs/cgroup");
}

int share_of_cores(const std::vector<std::string>& here, const std::vector<std::string>& machine) {
  const auto ranks = static_cast<int>(here.size()), all = static_cast<int>(machine.size());
  return std::clamp(count_of_any(machine) * ranks / std::max(1, all), 1, cores_together(here));
}

}  // namespace medley
