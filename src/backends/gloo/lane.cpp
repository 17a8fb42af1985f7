#include "backends/gloo/lane.hpp"

namespace medley::gloo_backend {
namespace {

/// The adapter's transfer, plus the ranks that are missing.
class CollectiveTransfer final : public Transfer {
 public:
  CollectiveTransfer(TagMatcher& matcher, Transfer* inner, std::uint64_t number)
      : matcher_(matcher), inner_(inner), number_(number) {}
  Poll poll() override {
    const Poll seen = inner_->poll();
    if (seen == Poll::waiting) matcher_.throw_if_failed();
    return seen;
  }
  std::vector<int> awaited() const override { return matcher_.absent(number_); }
  void release() noexcept override { inner_->release(), delete this; }
  void abandon(std::shared_ptr<const void> memory) noexcept override {
    inner_->abandon(std::move(memory)), delete this;
  }

 private:
  TagMatcher& matcher_;
  Transfer* inner_;
  std::uint64_t number_;
};

}  // namespace

GlooLane::GlooLane(const CommParams& params, const std::shared_ptr<::gloo::transport::Device>& device,
                   const std::vector<std::string>& hosts, const std::shared_ptr<Doorbell>& doorbell)
    : mesh_(std::make_shared<Mesh>(params, device, hosts)),
      matcher_(std::make_shared<TagMatcher>(mesh_, doorbell)),
      collectives_(std::make_unique<BlockingLane>(std::make_shared<Collectives>(mesh_, matcher_), params.size, no_limit,
                                                  [doorbell] { doorbell->ring(); })) {}

GlooLane::~GlooLane() {
  if (fork_guard_.here()) {
    collectives_.reset();
    matcher_->close();  // here, not when an ending worker drops its reference
    return;
  }
  // A forked child has none of the threads: joining them would wait for ever.
  static_cast<void>(new std::shared_ptr<Mesh>(std::move(mesh_)));
  static_cast<void>(new std::shared_ptr<TagMatcher>(std::move(matcher_)));
  static_cast<void>(collectives_.release());
}

Transfer* GlooLane::start(const Call& call) {
  if (call.op == Op::send || call.op == Op::recv) return matcher_->start(call);
  matcher_->throw_if_failed();
  Transfer* inner = collectives_->start(call);
  return new CollectiveTransfer(*matcher_, inner, ++started_);
}

}  // namespace medley::gloo_backend
