// The launches of one stream, in order, and which of them are known to be complete. Lanes have one for collectives,
// channels one for their messages.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <medley/backend.hpp>
#include <memory>
#include <vector>

#include "backends/cuda/device_clock.hpp"

namespace medley::nccl {

class Track {
 public:
  using Times = cuda::EventPool::Times;
  /// `clock`: set where launches are timed.
  explicit Track(int device, std::shared_ptr<cuda::DeviceClock> clock = nullptr)
      : stream_(cuda::Stream::Priority::high),
        clock_(std::move(clock)),
        events_(device, clock_ ? Times::yes : Times::no) {}
  Track(const Track&) = delete;
  Track& operator=(const Track&) = delete;
  ~Track() {
    for (const Mark& mark : marks_) give_back(mark);
    if (begin_) events_.give_back(begin_);
    under_way_.fetch_sub(static_cast<int>(marks_.size()), std::memory_order_relaxed);
  }
  /// Launches of this process that are not known to be complete.
  static int under_way() { return under_way_.load(std::memory_order_relaxed); }
  cudaStream_t stream() const { return stream_.get(); }
  /// The pieces of the launches that are not known to be complete.
  std::size_t outstanding() const { return outstanding_; }

  /// Before a launch: makes its stream wait for the call's dependencies.
  void follow(const Call& call) {
    if (call.dependencies) {
      cuda::check(cudaStreamWaitEvent(stream(), static_cast<cudaEvent_t>(call.dependencies->ready), 0),
                  "cudaStreamWaitEvent");
      for (Transfer* earlier : call.dependencies->transfers) earlier->order(stream());
    }
    if (!clock_ || call.captured) return;
    if (!begin_) begin_ = events_.take();
    cuda::check(cudaEventRecord(begin_, stream()), "cudaEventRecord");
  }
  /// After a launch: its number, which is complete once all up to it are. `pieces`: what outstanding() counts it as.
  std::uint64_t launched(std::size_t pieces) {
    cudaEvent_t event = events_.take();
    const cudaError_t result = cudaEventRecord(event, stream());
    marks_.push_back({++last_, event, pieces, std::exchange(begin_, nullptr)});
    outstanding_ += pieces;
    under_way_.fetch_add(1, std::memory_order_relaxed);
    cuda::check(result, "cudaEventRecord");
    return last_;
  }
  /// Known without asking CUDA.
  bool known_complete(std::uint64_t number) const { return number <= done_; }
  /// Whether calling complete() is worthwhile: not while an earlier one is unknown.
  bool due(std::uint64_t number) const { return number == marks_.front().number; }
  /// Queries CUDA on behalf of the oldest only: later launches of a stream complete later. A query takes longest while
  /// an event is not complete (0.8 µs, H200), so a binary search finds the last complete one.
  bool complete(std::uint64_t number) {
    if (number <= done_) return true;
    if (number != marks_.front().number || !cuda::reached(marks_.front().event)) return false;
    // Counts: the first `reached` are complete, the first `beyond` are not all
    std::size_t reached = 1, beyond = marks_.size() + 1;
    while (beyond - reached > 1) {
      const std::size_t middle = reached + (beyond - reached) / 2;
      (cuda::reached(marks_[middle - 1].event) ? reached : beyond) = middle;
    }
    finish(reached);
    return true;
  }
  /// For a captured launch, which runs only in graphs: it counts as complete, and its event is not queried.
  void forget(std::uint64_t number) {
    give_back(marks_.back());
    outstanding_ -= marks_.back().pieces;
    marks_.pop_back();
    under_way_.fetch_sub(1, std::memory_order_relaxed);
    if (marks_.empty()) done_ = number;
  }
  /// Makes a stream wait for a launch that is not known to be complete.
  void order(std::uint64_t number, cudaStream_t behind) {
    if (number <= done_ || behind == stream()) return;
    cuda::check(cudaStreamWaitEvent(behind, mark(number).event, 0), "cudaStreamWaitEvent");
  }
  /// Before the caller's stream is first made to wait for a launch.
  void note_wait(std::uint64_t number, cudaStream_t behind) {
    if (!clock_ || number <= done_ || mark(number).awaited) return;
    cudaEvent_t event = mark(number).awaited = events_.take();
    cuda::check(cudaEventRecord(event, behind), "cudaEventRecord");
  }
  /// The times of a complete launch, once.
  DeviceTimes take_times(std::uint64_t number) {
    const auto found = times_.find(number);
    if (found == times_.end()) return {};
    const DeviceTimes times = found->second;
    times_.erase(times_.begin(), std::next(found));  // earlier ones were abandoned by their transfers
    return times;
  }

 private:
  struct Mark {
    std::uint64_t number;
    cudaEvent_t event;
    std::size_t pieces;
    cudaEvent_t begin = nullptr, awaited = nullptr;  ///< set where launches are timed
  };
  Mark& mark(std::uint64_t number) { return marks_[static_cast<std::size_t>(number - marks_.front().number)]; }
  void give_back(const Mark& mark) {
    for (cudaEvent_t event : {mark.event, mark.begin, mark.awaited}) {
      if (event) events_.give_back(event);
    }
  }
  void note_times(const Mark& mark) {
    DeviceTimes& times = times_[mark.number];
    times.begun = clock_->when(mark.begin);
    times.ended = clock_->when(mark.event);
    // A stream that arrives there later did not wait.
    if (mark.awaited) times.awaited = cuda::reached(mark.awaited) ? clock_->when(mark.awaited) : times.ended;
  }
  void finish(std::size_t count) {
    done_ = marks_[count - 1].number;
    for (std::size_t i = 0; i < count; ++i) {
      if (marks_[i].begin) note_times(marks_[i]);
      outstanding_ -= marks_[i].pieces;
      give_back(marks_[i]);
    }
    marks_.erase(marks_.begin(), marks_.begin() + static_cast<std::ptrdiff_t>(count));
    under_way_.fetch_sub(static_cast<int>(count), std::memory_order_relaxed);
  }

  /// relaxed: a count that nothing is read behind; no kernel is launched while retired communicators are destroyed
  /// based on it.
  static inline std::atomic<int> under_way_{0};
  cuda::Stream stream_;
  std::shared_ptr<cuda::DeviceClock> clock_;
  cuda::EventPool events_;
  cudaEvent_t begin_ = nullptr;                 ///< of the next launch
  std::vector<Mark> marks_;                     ///< launched and not known to be complete, in order
  std::map<std::uint64_t, DeviceTimes> times_;  ///< of complete launches, not fetched yet
  std::size_t outstanding_ = 0;                 ///< the sum of their pieces
  std::uint64_t last_ = 0, done_ = 0;
};

}  // namespace medley::nccl
