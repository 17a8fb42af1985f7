// A backend that can only send and receive (over shm's mail), so that every collective is filled in: what the
// algorithms are tested with.
#include <medley/backend.hpp>
#include <stdexcept>

#include "core/plugins.hpp"

namespace {

using namespace medley;

const BackendPlugin& shm() {
  return *core::find_backend("shm")->plugin();
}

class PlainLane final : public Lane {
 public:
  explicit PlainLane(std::unique_ptr<Lane> mail) : mail_(std::move(mail)) {}
  Transfer* start(const Call& call) override {
    if (call.op != Op::send && call.op != Op::recv)
      throw std::logic_error("a plain lane was given a collective");
    return mail_->start(call);
  }
  void progress() override { mail_->progress(); }
  void check() override { mail_->check(); }
  void abort(const Error& why) noexcept override { mail_->abort(why); }

 private:
  std::unique_ptr<Lane> mail_;
};

class PlainBackend final : public Backend {
 public:
  explicit PlainBackend(const Surroundings& surroundings) : shm_(shm().create(surroundings)) {}
  std::string_view name() const override { return "plain"; }
  std::string version() const override { return "for tests"; }
  bool has_memory(Memory memory) const override { return memory == Memory::host; }
  bool native(Op op, DType, ReduceOp, Memory) const override { return op == Op::send || op == Op::recv; }
  std::string refuses(const std::vector<int>& ranks) const override { return shm_->refuses(ranks); }
  std::unique_ptr<Lane> connect(const Group& group) override {
    return std::make_unique<PlainLane>(shm_->connect(group));
  }
  Waiter* waiter() override { return shm_->waiter(); }

 private:
  std::unique_ptr<Backend> shm_;
};

}  // namespace

extern "C" const medley::BackendPlugin* medley_backend() {
  static const BackendPlugin plugin{
      .abi = backend_abi,
      .name = "plain",
      .unavailable = [] { return shm().unavailable(); },
      .create = [](const Surroundings& s) -> std::unique_ptr<Backend> {
        return std::make_unique<PlainBackend>(s);
      },
  };
  return &plugin;
}
