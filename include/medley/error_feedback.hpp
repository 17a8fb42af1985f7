// What lossy compression has not sent of a tensor yet; it is added to the tensor's next values. The program keeps one
// for each tensor.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace medley {

namespace algorithms {
class FeedbackAccess;
}

/// Pass it to every all_reduce, reduce or reduce_scatter of one tensor (Options::feedback). Like a buffer it belongs to
/// the operation until that is complete. Operations with the same object run one after the other, in issue order. It
/// takes 4 bytes for each element.
class ErrorFeedback {
 public:
  ErrorFeedback() = default;
  ErrorFeedback(const ErrorFeedback&) = delete;
  ErrorFeedback& operator=(const ErrorFeedback&) = delete;

  /// Elements of the tensor; 0 before the first operation.
  std::int64_t count() const noexcept { return count_; }
  /// What is still to be sent of this rank's values, for checkpoints and statistics. Empty where a tensor in CUDA
  /// memory is compressed on the device: its residual is on the device, too.
  std::span<float> residual() noexcept { return residual_; }
  /// The same for the part of the result that this rank computes and sends to the others; empty for reduce_scatter.
  std::span<float> result_residual() noexcept { return result_; }
  /// Forgets everything: the next operation may have another number of elements.
  void reset() noexcept {
    count_ = result_count_ = 0;
    residual_.clear();
    result_.clear();
    on_device_.reset();
    result_on_device_.reset();
  }

 private:
  friend class algorithms::FeedbackAccess;
  std::int64_t count_ = 0, result_count_ = 0;
  std::vector<float> residual_, result_;  ///< made by the first operation that needs them
  std::shared_ptr<float> on_device_, result_on_device_;
};

}  // namespace medley
