// Gloo's own collectives, run by the blocking adapter's worker thread. Used by the lane.
#pragma once

#include <cstdint>
#include <medley/sdk/blocking_adapter.hpp>
#include <memory>

#include "backends/gloo/mesh.hpp"
#include "backends/gloo/tag_matcher.hpp"

namespace medley::gloo_backend {

/// Whether Gloo supports it. Its reductions take a function of two operands: sum, product, min and max of types that do
/// not round at every step. f16 and bf16 would, so they are filled in.
bool has_collective(Op op, DType dtype, ReduceOp reduce);

class Collectives final : public BlockingLibrary {
 public:
  Collectives(std::shared_ptr<Mesh> mesh, std::shared_ptr<TagMatcher> matcher)
      : mesh_(std::move(mesh)), matcher_(std::move(matcher)) {}
  int perform(const Call& call, Deadline deadline) override;
  void stop(const Error& why) noexcept override;
  bool poll_stop() noexcept override;
  void check() override { matcher_->check(); }

 private:
  void dispatch(const Call& call, std::uint32_t tag);
  void broadcast(const Call& call, std::uint32_t tag);
  void reduce(const Call& call, std::uint32_t tag);
  void all_reduce(const Call& call, std::uint32_t tag);
  void gather(const Call& call, std::uint32_t tag);
  void all_gather(const Call& call, std::uint32_t tag);
  void all_gatherv(const Call& call, std::uint32_t tag);
  void scatter(const Call& call, std::uint32_t tag);
  void all_to_all(const Call& call, std::uint32_t tag);
  void all_to_allv(const Call& call, std::uint32_t tag);
  void compare_parts(const Call& call, std::uint32_t tag);

  std::shared_ptr<Mesh> mesh_;
  std::shared_ptr<TagMatcher> matcher_;
  bool stopping_ = false;  ///< the peers are being notified; under the engine's lock
  std::uint64_t number_ = 0;
};

}  // namespace medley::gloo_backend
