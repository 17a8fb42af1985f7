// torch's own store as a medley::Store, so that the ranks of a process group rendezvous where torch already
// does; no other configuration, port or token.
#pragma once

#include <medley/store.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace medley::torch {

class TorchStore final : public Store {
 public:
  explicit TorchStore(c10::intrusive_ptr<c10d::Store> store) : store_(std::move(store)) {}

  void set(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key, Deadline deadline) override;
  std::optional<std::string> try_get(const std::string& key) override;
  std::int64_t add(const std::string& key, std::int64_t delta) override;
  void erase(const std::string& key) override;
  /// torch's stores cannot list keys. The remaining keys are small and vanish with the group's own part of
  /// the store.
  void erase_prefix(const std::string&) override {}

 private:
  c10::intrusive_ptr<c10d::Store> store_;
};

}  // namespace medley::torch
