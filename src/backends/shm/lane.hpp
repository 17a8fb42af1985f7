// The shm backend on one comm: its segment, the exchange that collectives run on, and the mail.
#pragma once

#include <medley/backend.hpp>
#include <memory>
#include <string>
#include <vector>

#include "backends/shm/collective.hpp"
#include "backends/shm/mail.hpp"
#include "backends/shm/segment.hpp"

namespace medley::shm {

class Neighbourhood;

class ShmLane final : public Lane {
 public:
  ShmLane(const Group& group, const Neighbourhood& neighbours);
  ~ShmLane() override;
  Transfer* start(const Call& call) override;
  void progress() override;
  bool concurrent_collectives() const override { return false; }
  void check() override;
  void abort(const Error& why) noexcept override;

 private:
  bool awaits(int rank) const;
  const Neighbourhood& neighbours_;
  std::vector<int> members_;
  Segment segment_;
  Board board_;
  int rank_;
  Exchanger exchanger_;
  Collective collective_;
  std::unique_ptr<Mail> mail_;     ///< made with the first send or receive
};

}  // namespace medley::shm
