#include "backends/gloo/lane.hpp"

namespace medley::gloo_backend {
namespace {

/// What the adapter gives, with the ranks that are missing.
class CollectiveTransfer final : public Transfer {
 public:
  CollectiveTransfer(Mail& mail, Transfer* inner, std::uint64_t number)
      : mail_(mail), inner_(inner), number_(number) {}
  Poll poll() override {
    const Poll seen = inner_->poll();
    if (seen == Poll::waiting) mail_.throw_if_failed();
    return seen;
  }
  std::vector<int> awaited() const override { return mail_.absent(number_); }
  void release() noexcept override { inner_->release(), delete this; }
  void abandon(std::shared_ptr<const void> memory) noexcept override { inner_->abandon(std::move(memory)), delete this; }

 private:
  Mail& mail_;
  Transfer* inner_;
  std::uint64_t number_;
};

}  // namespace

GlooLane::GlooLane(const Group& group, const std::shared_ptr<::gloo::transport::Device>& device,
                   const std::vector<std::string>& hosts, const std::shared_ptr<Bell>& bell)
    : mesh_(std::make_shared<Mesh>(group, device, hosts)),
      mail_(std::make_shared<Mail>(mesh_, bell)),
      collectives_(std::make_unique<BlockingLane>(std::make_shared<Collectives>(mesh_, mail_), group.size,
                                                  no_limit, [bell] { bell->ring(); })) {}

GlooLane::~GlooLane() {
  if (fork_guard_.here()) {
    collectives_.reset();
    mail_->close();  // here, not when a worker that is about to end lets go of it
    return;
  }
  // A forked child has none of the threads: joining them would wait for ever.
  static_cast<void>(new std::shared_ptr<Mesh>(std::move(mesh_)));
  static_cast<void>(new std::shared_ptr<Mail>(std::move(mail_)));
  static_cast<void>(collectives_.release());
}

Transfer* GlooLane::start(const Call& call) {
  if (call.op == Op::send || call.op == Op::recv) return mail_->start(call);
  mail_->throw_if_failed();
  Transfer* inner = collectives_->start(call);
  return new CollectiveTransfer(*mail_, inner, ++started_);
}

}  // namespace medley::gloo_backend
