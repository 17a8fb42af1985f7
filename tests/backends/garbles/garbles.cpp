// A backend that corrupts data now and then: every seventh message of its lanes has two bytes swapped or one changed.
// The soak must detect it.
#include <cstddef>
#include <utility>

#include "backends/over_shm.hpp"

namespace {

using namespace medley;

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

class GarblingLane final : public test::MailLane {
 public:
  static constexpr std::string_view name = "garbles";
  using MailLane::MailLane;
  Transfer* start(const Call& call) override {
    Transfer* transfer = mail_->start(call);
    if (call.op != Op::recv || call.tag < 0 || !transfer || ++receives_ % wrong_every != 0) return transfer;
    return new Garbled(transfer, call);
  }

 private:
  int receives_ = 0;
};

}  // namespace

extern "C" const medley::BackendPlugin* medley_backend() { return test::OverShm<GarblingLane>::plugin(); }
