#include "bootstrap/binding.hpp"

#include <sched.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdlib>
#include <fstream>

#include "bootstrap/host.hpp"

namespace medley {
namespace {

constexpr std::size_t most_cores = 65536;  // as in core_mask()
constexpr std::size_t bits_per_word = sizeof(unsigned long) * CHAR_BIT;

/// Which hardware thread of its core this is: 0 for the first. All are first where the system does not say.
int thread_of_core(int cpu, const std::string& mask, const std::string& topology) {
  std::ifstream file(topology + "/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list");
  int place = 0;
  char separator = ',';
  for (int first = 0; separator == ',' && file >> first;) {  // "0,32" or "0-1"
    int last = first;
    separator = static_cast<char>(file.get());
    if (separator == '-' && file >> last) separator = static_cast<char>(file.get());
    for (int sibling = first; sibling <= last && sibling < cpu; ++sibling) {
      const auto index = static_cast<std::size_t>(sibling);
      place += index < mask.size() && mask[index] == '1';
    }
  }
  return place;
}

}  // namespace

std::vector<int> binding_order(const std::string& mask, const std::string& topology) {
  struct Place {
    int thread, cpu;
    auto operator<=>(const Place&) const = default;
  };
  std::vector<Place> places;
  for (std::size_t i = 0; i < mask.size(); ++i) {
    const auto cpu = static_cast<int>(i);
    if (mask[i] == '1') places.push_back({thread_of_core(cpu, mask, topology), cpu});
  }
  std::sort(places.begin(), places.end());
  std::vector<int> order;
  for (const Place& place : places) order.push_back(place.cpu);
  return order;
}

std::string one_core(int core) { return std::string(static_cast<std::size_t>(core), '0') + '1'; }

std::vector<std::string> cores_for(int ranks) {
  if (ranks > usable_cores()) return {};
  const std::vector<int> order = binding_order(core_mask());
  std::vector<std::string> masks;
  for (int rank = 0; rank < ranks; ++rank) {
    masks.push_back(one_core(order[static_cast<std::size_t>(rank)]));
  }
  return masks;
}

bool run_on(const std::string& mask) noexcept {
  std::array<unsigned long, most_cores / bits_per_word> words{};
  if (mask.size() > most_cores) return false;
  for (std::size_t i = 0; i < mask.size(); ++i) {
    if (mask[i] == '1') words[i / bits_per_word] |= 1ul << (i % bits_per_word);
  }
  return sched_setaffinity(0, sizeof words, reinterpret_cast<const cpu_set_t*>(words.data())) == 0;
}

UnboundThreadScope::UnboundThreadScope() {
  const char* all = std::getenv("MEDLEY_CORES");
  if (!all || !*all) return;
  std::string own = core_mask();
  if (run_on(all)) own_ = std::move(own);
}

UnboundThreadScope::~UnboundThreadScope() {
  if (!own_.empty()) run_on(own_);
}

}  // namespace medley
