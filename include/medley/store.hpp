// A small key-value store for the rendezvous: ranks find each other through it before they have any other connection.
// Medley brings its own (served by the launcher or rank 0, or in memory for threads); a program may supply another.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <medley/export.hpp>

namespace medley {

using Deadline = std::chrono::steady_clock::time_point;

/// The deadline `duration` from now. A duration beyond the clock's range, such as nanoseconds::max(), gives one that
/// never passes.
inline Deadline deadline_after(std::chrono::nanoseconds duration) {
  const Deadline now = std::chrono::steady_clock::now();
  return duration > Deadline::max() - now ? Deadline::max() : now + duration;
}

/// Keys and values are byte strings. Every method may be called from any thread, and none waits beyond its deadline.
class MEDLEY_API Store {
 public:
  virtual ~Store() = default;
  /// Stores a value in place of an earlier one.
  virtual void set(const std::string& key, const std::string& value) = 0;
  /// Waits until the key exists; throws Error of kind timeout when the deadline passes first.
  virtual std::string get(const std::string& key, Deadline deadline) = 0;
  /// The value, or none if the key does not exist now.
  virtual std::optional<std::string> try_get(const std::string& key) = 0;
  /// Atomically adds to a decimal number (an absent key counts as 0) and returns the sum.
  virtual std::int64_t add(const std::string& key, std::int64_t delta) = 0;
  /// Removes the key if it exists.
  virtual void erase(const std::string& key) = 0;
  /// Removes all keys that begin with `prefix`.
  virtual void erase_prefix(const std::string& prefix) = 0;
  /// The address this process reaches the store from, by which other hosts can reach this one. Empty when
  /// no network is involved.
  virtual std::string own_address() const { return {}; }
};

/// A store inside one process, for ranks that are threads.
MEDLEY_API std::shared_ptr<Store> make_local_store();

}  // namespace medley
