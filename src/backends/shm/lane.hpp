// The shm backend on one comm: its segment, the exchanger of collectives, and the tag matcher.
#pragma once

#include <medley/backend.hpp>
#include <medley/sdk/fork_guard.hpp>
#include <memory>
#include <string>
#include <vector>

#include "backends/shm/collective.hpp"
#include "backends/shm/segment.hpp"
#include "backends/shm/tag_matcher.hpp"

namespace medley::shm {

class HostPeers;

class ShmLane final : public Lane {
 public:
  ShmLane(const CommParams& params, const HostPeers& host_peers);
  ~ShmLane() override;
  Transfer* start(const Call& call) override;
  bool send_now(int to, int tag, const void* data, std::size_t bytes) override {
    // The first message goes through start(), which may fail
    return matcher_ && matcher_->send_now(to, tag, data, bytes);
  }
  void progress() override;
  bool concurrent_collectives() const override { return false; }
  void check() override;
  void abort(const Error& why) noexcept override;

 private:
  bool awaits(int rank) const;
  // Memory is populated when first needed, so that a comm with only small operations stays small; by Segment::populate,
  // so that a full /dev/shm is an error and not a SIGBUS.
  std::size_t staging_for(const Call& call) const;
  void populate_staging(std::size_t of_each_slot);
  void make_matcher();
  const HostPeers& host_peers_;
  std::vector<int> members_;
  const std::size_t in_line_bytes_ = inline_bytes / members_.size();  ///< so much of any operation needs no staging
  Segment segment_;
  SegmentView view_;
  int rank_;
  Exchanger exchanger_;
  Collective collective_;
  std::unique_ptr<TagMatcher> matcher_;  ///< made with the first send or receive
};

}  // namespace medley::shm
