// A backend that gets something wrong now and then: every seventh message of its lanes has two bytes swapped
// or one changed. What the soak must notice.
#include <cstddef>
#include <medley/backend.hpp>
#include <utility>

#include "core/plugins.hpp"

namespace {

using namespace medley;

const BackendPlugin& shm() {
  return *core::find_backend("shm")->plugin();
}

constexpr int wrong_every = 7;

class Garbled final : public Transfer {
 public:
  Garbled(Transfer* inner, const Call& call) : inner_(inner), call_(call) {}
  Poll poll() override {
    const Poll seen = inner_->poll();
    if (seen == Poll::complete && call_.out_count > 0) {
      auto* bytes = static_cast<std::byte*>(call_.out);
      std::byte& last = bytes[call_.out_count * static_cast<std::int64_t>(size_of(call_.dtype)) - 1];
      if (bytes[0] == last) bytes[0] ^= std::byte{1};
      std::swap(bytes[0], last);
    }
    return seen;
  }
  std::vector<int> awaited() const override { return inner_->awaited(); }
  int source() const override { return inner_->source(); }
  void release() noexcept override { inner_->release(), delete this; }

 private:
  Transfer* inner_;
  Call call_;
};

class GarblingLane final : public Lane {
 public:
  explicit GarblingLane(std::unique_ptr<Lane> mail) : mail_(std::move(mail)) {}
  Transfer* start(const Call& call) override {
    Transfer* transfer = mail_->start(call);
    if (call.op != Op::recv || call.tag < 0 || !transfer || ++receives_ % wrong_every != 0) return transfer;
    return new Garbled(transfer, call);
  }
  void progress() override { mail_->progress(); }
  void check() override { mail_->check(); }
  void abort(const Error& why) noexcept override { mail_->abort(why); }

 private:
  std::unique_ptr<Lane> mail_;
  int receives_ = 0;
};

class GarblingBackend final : public Backend {
 public:
  explicit GarblingBackend(const Surroundings& surroundings) : shm_(shm().create(surroundings)) {}
  std::string_view name() const override { return "garbles"; }
  std::string version() const override { return "for tests"; }
  bool has_memory(Memory memory) const override { return memory == Memory::host; }
  bool native(Op op, DType, ReduceOp, Memory) const override { return op == Op::send || op == Op::recv; }
  std::string refuses(const std::vector<int>& ranks) const override { return shm_->refuses(ranks); }
  std::unique_ptr<Lane> connect(const Group& group) override {
    return std::make_unique<GarblingLane>(shm_->connect(group));
  }
  Waiter* waiter() override { return shm_->waiter(); }

 private:
  std::unique_ptr<Backend> shm_;
};

}  // namespace

extern "C" const medley::BackendPlugin* medley_backend() {
  static const BackendPlugin plugin{
      .abi = backend_abi,
      .name = "garbles",
      .unavailable = [] { return shm().unavailable(); },
      .create = [](const Surroundings& s) -> std::unique_ptr<Backend> {
        return std::make_unique<GarblingBackend>(s);
      },
  };
  return &plugin;
}
