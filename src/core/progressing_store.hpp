// A store whose waits drive the engine: ranks that meet to make a comm may still owe each other what they issued before,
// such as a large send that its receiver waits for before it comes to the meeting.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <medley/error.hpp>
#include <medley/store.hpp>
#include <string>
#include <thread>

#include "core/engine.hpp"

namespace medley::core {

class ProgressingStore final : public Store {
 public:
  ProgressingStore(Store& inner, Engine& engine) : inner_(inner), engine_(engine) {}

  std::string get(const std::string& key, Deadline deadline) override {
    for (;;) {
      if (auto value = inner_.try_get(key)) return *std::move(value);
      if (std::chrono::steady_clock::now() > deadline) {
        throw Error(ErrorKind::timeout, fmt::format("nobody set \"{}\" before the deadline passed", key));
      }
      engine_.progress();
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  }
  void set(const std::string& key, const std::string& value) override { inner_.set(key, value); }
  std::optional<std::string> try_get(const std::string& key) override { return inner_.try_get(key); }
  std::int64_t add(const std::string& key, std::int64_t amount) override { return inner_.add(key, amount); }
  void erase(const std::string& key) override { inner_.erase(key); }
  void erase_prefix(const std::string& prefix) override { inner_.erase_prefix(prefix); }

 private:
  Store& inner_;
  Engine& engine_;
};

}  // namespace medley::core
