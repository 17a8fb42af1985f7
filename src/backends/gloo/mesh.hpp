// The connections among the ranks of one comm: a Gloo context whose pairs connected through the comm's store. Used by
// the lane's tag matcher and collectives.
#pragma once

#include <gloo/context.h>

#include <chrono>
#include <medley/backend.hpp>
#include <memory>

#include "backends/gloo/process_watch.hpp"
#include "backends/gloo/transport.hpp"

namespace medley::gloo_backend {

/// Waits in Gloo have no timeout here: deadlines belong to the engine, and sever() ends them.
inline constexpr std::chrono::milliseconds no_limit = std::chrono::hours(24 * 365);

class Mesh final : public ::gloo::Context {
 public:
  /// Connects every pair; called by all members together.
  Mesh(const CommParams& params, const std::shared_ptr<::gloo::transport::Device>& device,
       const std::vector<std::string>& hosts);
  /// Whether a member on this host is known to have exited.
  bool ended(int of) const { return processes_[static_cast<std::size_t>(of)].ended(); }
  void sever() noexcept { transport_->sever(); }

 private:
  std::string offer();
  void meet(const CommParams& params, const std::vector<std::string>& offers, const std::vector<std::string>& hosts);
  std::vector<ProcessWatch> processes_;
  std::shared_ptr<EndableTransport> transport_;
};

}  // namespace medley::gloo_backend
