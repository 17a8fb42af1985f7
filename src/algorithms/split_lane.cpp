#include "algorithms/split_lane.hpp"

#include <algorithm>

#include "algorithms/registry.hpp"
#include "algorithms/running_transfers.hpp"
#include "algorithms/split_share.hpp"

namespace medley::algorithms {

/// Both parts of one collective.
class SplitTransfer final : public Transfer {
 public:
  explicit SplitTransfer(SplitLane& lane) : lane_(lane) {}
  ~SplitTransfer() override = default;   // uses no lane

  void add(Transfer* part, bool in_stream) {
    parts_.add(part);
    if (in_stream) streamed_ = part;
  }
  bool done() const { return parts_.empty(); }

  Poll poll() override {
    bool moved = false;
    lane_.progress();   // the engine progresses a lane between polls only for messages and what it has filled in itself
    const std::size_t before = parts_.list().size();
    if (parts_.poll(moved)) return Poll::complete;
    return moved || parts_.list().size() < before ? Poll::moved : Poll::waiting;
  }
  std::vector<int> awaited() const override {
    std::vector<int> ranks;
    for (const Transfer* part : parts_.list()) {
      for (const int rank : part->awaited()) ranks.push_back(rank);
    }
    std::sort(ranks.begin(), ranks.end());
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
    return ranks;
  }
  /// A part that the host stages launches nothing in a stream.
  bool launched() override {
    const auto& left = parts_.list();
    return !streamed_ || std::find(left.begin(), left.end(), streamed_) == left.end() || streamed_->launched();
  }
  bool order(void* stream) override { return parts_.order(stream); }
  void release() noexcept override {
    if (parts_.empty()) {
      delete this;
    } else {
      lane_.orphans_.push_back(this);
    }
  }
  /// `memory` has one owner, whom both libraries share.
  void abandon(std::shared_ptr<const void> memory) noexcept override {
    parts_.abandon(memory);
    delete this;
  }

 private:
  SplitLane& lane_;
  RunningTransfers parts_;
  Transfer* streamed_ = nullptr;   ///< the part that launches in a stream, if any
};

Transfer* SplitLane::start_part(const Call& call, bool second) {
  Call part = call;
  part.algorithm = reduces(call.op) && lanes_.own_reductions[second ? 1 : 0] ? choose(call, ranks_).name : std::string_view{};
  return (second ? lanes_.second : lanes_.first)->start(part);
}

Transfer* SplitLane::start(const Call& call) {
  if (lanes_.on_device && call.memory == Memory::host) return lanes_.on_host->start(call);   // a barrier
  if (!is_collective(call.op)) return lanes_.first->start(call);
  const std::int64_t count = std::max(call.in_count, call.out_count);
  const std::int64_t border = divisible(call.op) && !call.list ? first_part(count, share_of(call.algorithm).value_or(default_share)) : count;
  if (border == 0 || border == count) return start_part(call, border != count);   // also where nothing is moved
  const auto bytes = static_cast<std::size_t>(border) * size_of(call.dtype);
  Call front = call, back = call;
  if (call.in) {
    front.in_count = border;
    back.in_count = call.in_count - border;
    back.in = static_cast<const std::byte*>(call.in) + bytes;
  }
  if (call.out) {
    front.out_count = border;
    back.out_count = call.out_count - border;
    back.out = static_cast<std::byte*>(call.out) + bytes;
  }
  auto* transfer = new SplitTransfer(*this);
  try {
    transfer->add(start_part(front, false), lanes_.first->in_streams());
    transfer->add(start_part(back, true), lanes_.second->in_streams());
  } catch (...) {
    transfer->release();
    throw;
  }
  if (!transfer->done()) return transfer;
  transfer->release();
  return nullptr;
}

void SplitLane::progress() {
  lanes_.first->progress();
  lanes_.second->progress();
}

void SplitLane::check() {
  lanes_.first->check();
  lanes_.second->check();
}

void SplitLane::abort(const Error& why) noexcept {
  lanes_.first->abort(why);
  lanes_.second->abort(why);
}

bool SplitLane::poll_abort() noexcept {
  const bool first = lanes_.first->poll_abort(), over = lanes_.second->poll_abort() && first;
  if (over) abandon_orphans();
  return over;
}

bool SplitLane::poll_close() noexcept {
  if (!orphans_.empty() && !closing_) abort(Error(ErrorKind::aborted, "its comm was closed"));
  closing_ = true;
  bool over = orphans_.empty() || poll_abort();
  over = lanes_.first->poll_close() && over;
  return lanes_.second->poll_close() && over;
}

void SplitLane::abandon_orphans() noexcept {
  for (SplitTransfer* orphan : orphans_) orphan->abandon({});
  orphans_.clear();
}

SplitLane::~SplitLane() { abandon_orphans(); }

}  // namespace medley::algorithms
