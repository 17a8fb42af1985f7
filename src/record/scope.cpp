#include "record/scope.hpp"

#include <map>
#include <mutex>
#include <vector>

namespace medley {
namespace core {
namespace {

/// Names are few and live as long as the process: records of any context may refer to them.
struct Names {
  std::mutex mutex;
  std::map<std::string, std::uint32_t, std::less<>> numbers;
  std::vector<std::string> list{""};
};

Names& names() {
  static auto* const all = new Names;  // never destroyed: threads may outlive main()
  return *all;
}

thread_local std::uint32_t current = 0;

std::uint32_t number_of(std::string_view name) {
  Names& all = names();
  const std::lock_guard lock(all.mutex);
  if (const auto found = all.numbers.find(name); found != all.numbers.end()) return found->second;
  const auto number = static_cast<std::uint32_t>(all.list.size());
  all.list.emplace_back(name);
  all.numbers.emplace(name, number);
  return number;
}

}  // namespace

std::atomic<bool> any_scope{false};

std::uint32_t current_scope() noexcept { return current; }

std::string scope_name(std::uint32_t scope) {
  Names& all = names();
  const std::lock_guard lock(all.mutex);
  return all.list.at(scope);
}

}  // namespace core

Scope::Scope(std::string_view name) : outer_(core::current) {
  core::current = core::number_of(name);
  core::any_scope.store(true, std::memory_order_relaxed);  // relaxed: as scopes_exist() says
}
Scope::~Scope() { core::current = outer_; }

}  // namespace medley
