#include "store.hpp"

#include <medley/error.hpp>

#include <algorithm>
#include <thread>

namespace medley::torch {
namespace {

std::string text_of(const std::vector<std::uint8_t>& bytes) {
  return {bytes.begin(), bytes.end()};
}

}  // namespace

void TorchStore::set(const std::string& key, const std::string& value) {
  store_->set(key, std::vector<std::uint8_t>(value.begin(), value.end()));
}

std::string TorchStore::get(const std::string& key, Deadline deadline) {
  // Polls instead of calling store_->wait(): a TCPStore's client is locked while it waits, and the other
  // groups of this process share it.
  std::chrono::microseconds nap{100};
  while (true) {
    if (auto value = try_get(key)) return *std::move(value);
    if (std::chrono::steady_clock::now() >= deadline) {
      throw Error(ErrorKind::timeout, "torch's store did not get the key " + key +
                                          " within the group's timeout; is every rank of the group there?");
    }
    std::this_thread::sleep_for(nap);
    nap = std::min<std::chrono::microseconds>(nap * 2, std::chrono::milliseconds(10));
  }
}

std::optional<std::string> TorchStore::try_get(const std::string& key) {
  if (!store_->check({key})) return std::nullopt;
  return text_of(store_->get(key));
}

std::int64_t TorchStore::add(const std::string& key, std::int64_t delta) {
  return store_->add(key, delta);
}

void TorchStore::erase(const std::string& key) {
  store_->deleteKey(key);
}

}  // namespace medley::torch
