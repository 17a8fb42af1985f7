#include "fuse/series_transfer.hpp"

#include <deque>
#include <medley/sdk/current_error.hpp>
#include <optional>
#include <utility>

namespace medley::fuse {
namespace {

// Tensors that one poll starts before other operations get their turn: with tensors above the fusion limit, a few
// microseconds.
constexpr int started_per_poll = 16;

class SeriesTransfer final : public Transfer {
 public:
  SeriesTransfer(Lane& lane, const Call& call, std::shared_ptr<Fusion> fusion, int ranks, std::size_t most_started)
      : lane_(lane), call_(call), fusion_(std::move(fusion)), ranks_(ranks), most_(most_started) {}

  /// False when all are complete.
  bool start_some() {
    const std::vector<FusedTensor>& tensors = fusion_->tensors();
    for (int i = 0; i < started_per_poll && next_ < tensors.size() && running_.size() < most_; ++i) {
      Fusion::set_tensor(call_, tensors[next_], ranks_);
      Transfer* const started = lane_.start(call_);
      ++next_;
      if (started) running_.push_back(started);
    }
    return next_ < tensors.size() || !running_.empty();
  }
  Poll poll() override {
    if (failed_) throw *failed_;
    bool moved = false;
    const int passes = most_ == 1 ? started_per_poll : 1;  // one after the other, the next may be complete at once
    for (int i = 0; i < passes && poll_running(); ++i) {
      moved = true;
      if (!start_some()) return Poll::complete;
    }
    return moved ? Poll::moved : Poll::waiting;
  }
  std::vector<int> awaited() const override {
    return running_.empty() ? std::vector<int>{} : running_.front()->awaited();
  }
  bool launched() override { return next_ == fusion_->tensors().size(); }
  void release() noexcept override {
    for (Transfer* one : running_) one->release();
    delete this;
  }
  void abandon(std::shared_ptr<const void> memory) noexcept override {
    for (Transfer* one : running_) one->abandon(memory);
    delete this;
  }
  /// An error while some are under way: their memory stays with them, and poll() reports it.
  bool keep(const Error& error) {
    failed_ = error;
    return !running_.empty();
  }

 private:
  ~SeriesTransfer() override = default;
  /// Whether anything moved. Libraries complete them nearly in order.
  bool poll_running() {
    bool moved = running_.empty();
    for (std::size_t i = 0; i < running_.size();) {
      const Poll seen = running_[i]->poll();
      moved = moved || seen != Poll::waiting;
      if (seen != Poll::complete) {
        ++i;
        continue;
      }
      Transfer* const done = running_[i];
      running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(i));
      done->release();
    }
    return moved;
  }

  Lane& lane_;
  Call call_;
  std::shared_ptr<Fusion> fusion_;
  int ranks_;
  std::size_t most_, next_ = 0;
  std::deque<Transfer*> running_;
  std::optional<Error> failed_;
};

}  // namespace

Transfer* start_series(Lane& lane, const Call& call, std::shared_ptr<Fusion> fusion, int ranks,
                       std::size_t most_started) {
  auto* const series = new SeriesTransfer(lane, call, std::move(fusion), ranks, most_started);
  try {
    if (series->start_some()) return series;
  } catch (...) {
    const Error error = current_error();
    if (series->keep(error)) return series;
    series->release();
    throw error;
  }
  series->release();
  return nullptr;
}

}  // namespace medley::fuse
