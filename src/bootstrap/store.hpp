// The key-value store of a job: the ranks' rendezvous before they have any other connection.
// Served by rank 0 or by the launcher (store_server.hpp), reached over a socket (store_client.hpp) or in
// process.
#pragma once

#include <medley/export.hpp>
#include <medley/store.hpp>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace medley {

/// A store within one process, for ranks that are threads and for a job of one rank.
class MEDLEY_API LocalStore final : public Store {
 public:
  void set(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key, Deadline deadline) override;
  std::optional<std::string> try_get(const std::string& key) override;
  std::int64_t add(const std::string& key, std::int64_t delta) override;
  void erase(const std::string& key) override;
  void erase_prefix(const std::string& prefix) override;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> values_;
};

/// A view of another store that adds `prefix` to every key. Separates the keys of several contexts.
class MEDLEY_API PrefixStore final : public Store {
 public:
  PrefixStore(std::shared_ptr<Store> whole, std::string prefix)
      : whole_(std::move(whole)), prefix_(std::move(prefix)) {}
  void set(const std::string& key, const std::string& value) override { whole_->set(prefix_ + key, value); }
  std::string get(const std::string& key, Deadline deadline) override { return whole_->get(prefix_ + key, deadline); }
  std::optional<std::string> try_get(const std::string& key) override { return whole_->try_get(prefix_ + key); }
  std::int64_t add(const std::string& key, std::int64_t delta) override { return whole_->add(prefix_ + key, delta); }
  void erase(const std::string& key) override { whole_->erase(prefix_ + key); }
  void erase_prefix(const std::string& prefix) override { whole_->erase_prefix(prefix_ + prefix); }
  std::string own_address() const override { return whole_->own_address(); }

 private:
  std::shared_ptr<Store> whole_;
  std::string prefix_;
};

}  // namespace medley
