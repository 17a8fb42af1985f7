// A lane for messages between the ranks of one host, on a comm of several hosts: a backend that works inside hosts only
// (shm), connected among this host's members. Used where both ends of a message know its route from its peer: on comms
// with exact sizes.
#pragma once

#include <medley/backend.hpp>
#include <memory>
#include <utility>
#include <vector>

namespace medley::algorithms {

class HostLane final : public Lane {
 public:
  /// `members`: the comm's ranks on this host, in the order of the inner lane; `size`: of the comm.
  HostLane(std::unique_ptr<Lane> inner, std::vector<int> members, int size);

  Transfer* start(const Call& call) override;
  void progress() override { inner_->progress(); }
  bool undelivered() const override { return inner_->undelivered(); }
  void check() override;
  void abort(const Error& why) noexcept override;
  bool poll_abort() noexcept override { return inner_->poll_abort(); }
  bool poll_close() noexcept override { return inner_->poll_close(); }

  bool reaches(int rank) const { return rank >= 0 && places_[static_cast<std::size_t>(rank)] >= 0; }
  /// The same error with the comm's ranks; its text counts inside the host.
  Error in_ranks_of_comm(const Error& error) const;

 private:
  std::unique_ptr<Lane> inner_;
  std::vector<int> members_;  ///< rank in the comm, by rank in the inner lane
  std::vector<int> places_;   ///< rank in the inner lane, by rank in the comm; -1 on other hosts
};

}  // namespace medley::algorithms
