// gloo on one comm: collectives on the blocking adapter's worker thread, messages through the tag matcher.
#pragma once

#include <cstdint>
#include <medley/sdk/blocking_adapter.hpp>
#include <medley/sdk/fork_guard.hpp>
#include <memory>

#include "backends/gloo/collectives.hpp"
#include "backends/gloo/mesh.hpp"
#include "backends/gloo/tag_matcher.hpp"

namespace medley::gloo_backend {

class GlooLane final : public Lane {
 public:
  GlooLane(const CommParams& params, const std::shared_ptr<::gloo::transport::Device>& device,
           const std::vector<std::string>& hosts, const std::shared_ptr<Doorbell>& doorbell);
  ~GlooLane() override;
  Transfer* start(const Call& call) override;
  void check() override { matcher_->check(); }
  void abort(const Error& why) noexcept override { collectives_->abort(why); }
  bool poll_abort() noexcept override { return collectives_->poll_abort(); }
  bool poll_close() noexcept override {
    return !fork_guard_.here() || (collectives_->poll_close() && matcher_->poll_close());
  }

 private:
  ForkGuard fork_guard_;
  std::shared_ptr<Mesh> mesh_;
  std::shared_ptr<TagMatcher> matcher_;
  std::unique_ptr<BlockingLane> collectives_;
  std::uint64_t started_ = 0;
};

}  // namespace medley::gloo_backend
