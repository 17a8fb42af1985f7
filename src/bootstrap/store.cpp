#include "bootstrap/store.hpp"

#include <fmt/format.h>

#include <charconv>
#include <medley/error.hpp>

#include "bootstrap/table.hpp"

namespace medley {

void LocalStore::set(const std::string& key, const std::string& value) {
  const std::lock_guard lock(mutex_);
  values_[key] = value;
  changed_.notify_all();
}

std::string LocalStore::get(const std::string& key, Deadline deadline) {
  std::unique_lock lock(mutex_);
  const bool found = changed_.wait_until(lock, deadline, [&] { return values_.contains(key); });
  if (!found) throw Error(ErrorKind::timeout, fmt::format("nobody set \"{}\" in the store before the deadline", key));
  return values_[key];
}

std::optional<std::string> LocalStore::try_get(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto found = values_.find(key);
  return found == values_.end() ? std::nullopt : std::optional(found->second);
}

std::int64_t LocalStore::add(const std::string& key, std::int64_t delta) {
  const std::lock_guard lock(mutex_);
  const std::int64_t result = add_to(values_, key, delta);
  changed_.notify_all();
  return result;
}

void LocalStore::erase(const std::string& key) {
  const std::lock_guard lock(mutex_);
  values_.erase(key);
}

void LocalStore::erase_prefix(const std::string& prefix) {
  const std::lock_guard lock(mutex_);
  erase_range(values_, prefix);
}

std::int64_t add_to(StoreTable& table, const std::string& key, std::int64_t delta) {
  std::int64_t number = 0;
  const auto found = table.find(key);
  if (found != table.end()) {
    const std::string& text = found->second;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || stop != text.data() + text.size()) {
      throw Error(ErrorKind::invalid, fmt::format("\"{}\" in the store holds no number to add to", key));
    }
  }
  std::int64_t result = 0;
  if (__builtin_add_overflow(number, delta, &result)) {
    throw Error(ErrorKind::invalid, fmt::format("adding {} to \"{}\" in the store leaves 64 bits", delta, key));
  }
  table[key] = fmt::format("{}", result);
  return result;
}

void erase_range(StoreTable& table, const std::string& prefix) {
  auto entry = table.lower_bound(prefix);
  while (entry != table.end() && entry->first.starts_with(prefix)) entry = table.erase(entry);
}

std::shared_ptr<Store> make_local_store() { return std::make_shared<LocalStore>(); }

}  // namespace medley
