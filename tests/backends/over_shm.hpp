// A backend for tests that can only send and receive, over shm's tag matcher: all collectives are filled in. The test
// defines what its lane does with the messages.
#pragma once

#include <medley/backend.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "comm/backend_loader.hpp"

namespace medley::test {

inline const BackendPlugin& shm() { return *core::find_backend("shm")->plugin(); }

/// A lane over shm's; start() is left to the test.
class MailLane : public Lane {
 public:
  explicit MailLane(std::unique_ptr<Lane> mail) : mail_(std::move(mail)) {}
  void progress() override { mail_->progress(); }
  void check() override { mail_->check(); }
  void abort(const Error& why) noexcept override { mail_->abort(why); }

 protected:
  std::unique_ptr<Lane> mail_;
};

/// `Own` is the lane and provides the backend's name, `static constexpr std::string_view name`, and where it has
/// collectives of its own `static bool native(Op)`.
template <class Own>
class OverShm final : public Backend {
 public:
  explicit OverShm(const BackendParams& params) : shm_(shm().create(params)) {}
  std::string_view name() const override { return Own::name; }
  std::string version() const override { return "for tests"; }
  bool has_memory(Memory memory) const override { return memory == Memory::host; }
  bool native(Op op, DType, ReduceOp, Memory) const override {
    if constexpr (requires { Own::native(op); }) {
      if (Own::native(op)) return true;
    }
    return op == Op::send || op == Op::recv;
  }
  std::string refuses(const std::vector<int>& ranks) const override { return shm_->refuses(ranks); }
  std::unique_ptr<Lane> connect(const CommParams& params) override {
    return std::make_unique<Own>(shm_->connect(params));
  }
  EventCount* event_count() override { return shm_->event_count(); }

  static const BackendPlugin* plugin() {
    static const BackendPlugin own{
        .name = Own::name,
        .unavailable = [] { return shm().unavailable(); },
        .create = [](const BackendParams& params) -> std::unique_ptr<Backend> {
          return std::make_unique<OverShm>(params);
        },
    };
    return &own;
  }

 private:
  std::unique_ptr<Backend> shm_;
};

}  // namespace medley::test
