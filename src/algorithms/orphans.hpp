// Failed transfers whose libraries may still use memory, until their lane is aborted and they are abandoned. Used by
// lanes that are made of other lanes.
#pragma once

#include <medley/backend.hpp>
#include <memory>
#include <utility>
#include <vector>

namespace medley::algorithms {

/// A member after the lanes of its owner, so that it is destroyed before them.
class Orphans {
 public:
  Orphans() = default;
  Orphans(const Orphans&) = delete;
  Orphans& operator=(const Orphans&) = delete;
  ~Orphans() { abandon(); }

  /// `memory`: what the transfer uses, if it does not own it.
  void add(Transfer* transfer, std::shared_ptr<const void> memory = {}) {
    list_.push_back({transfer, std::move(memory)});
  }
  /// The lane is aborted.
  void abandon() noexcept {
    for (Orphan& orphan : std::exchange(list_, {})) orphan.transfer->abandon(std::move(orphan.memory));
  }
  /// The orphans' part of `lane`'s poll_close(): aborts it if it has any. True when there are none any more.
  bool poll_close(Lane& lane) noexcept {
    if (!list_.empty() && !closing_) lane.abort(Error(ErrorKind::aborted, "its comm was closed"));
    closing_ = true;
    return list_.empty() || lane.poll_abort();
  }

 private:
  struct Orphan {
    Transfer* transfer;
    std::shared_ptr<const void> memory;
  };
  std::vector<Orphan> list_;
  bool closing_ = false;
};

}  // namespace medley::algorithms
