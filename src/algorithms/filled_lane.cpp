#include "algorithms/filled_lane.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <medley/sdk/transfer_ref.hpp>

#include "algorithms/algorithms.hpp"
#include "algorithms/compressed.hpp"
#include "algorithms/registry.hpp"

namespace medley::algorithms {

/// A collective made of messages. Its coroutine owns the scratch memory that they use. It is shared with the messages
/// that the backend could not cancel when the lane was aborted, and destroyed with the last of them, which may be after
/// its lane.
class FilledTransfer final : public Transfer {
 public:
  static FilledTransfer* make(FilledLane& lane, const Call& call, const Algorithm& algorithm, std::uint64_t sequence,
                              std::shared_ptr<DeviceFrames> frames) {
    auto made = std::make_shared<FilledTransfer>(lane, call, algorithm, sequence, std::move(frames));
    FilledTransfer* const transfer = made.get();
    transfer->self_ = std::move(made);
    return transfer;
  }
  FilledTransfer(FilledLane& lane, const Call& call, const Algorithm& algorithm, std::uint64_t sequence,
                 std::shared_ptr<DeviceFrames> frames)
      : lane_(lane),
        call_(call),
        sequence_(sequence),
        device_{std::move(frames)},
        messages_(*lane.inner_, call_, lane.tag_of(sequence)),
        job_{call_, lane.rank_, lane.size_, messages_, device_.frames ? &device_ : nullptr},
        task_(run(algorithm)) {}
  ~FilledTransfer() override = default;  // uses no lane

  Poll poll() override {
    const Poll seen = step();
    // A message that progressed without ending the wait is progress too: the waiting thread must not sleep.
    return seen == Poll::waiting && messages_.take_moved() ? Poll::moved : seen;
  }
  std::vector<int> awaited() const override { return messages_.awaited(); }
  bool order(void* stream) override {
    if (device_.last) device_.frames->make_wait(stream, device_.last);
    return device_.last != nullptr;
  }
  void release() noexcept override {
    lane_.running_.erase(sequence_);
    lane_.adopt_messages_of(*this);
    const auto gone = std::move(self_);
  }
  void abandon(std::shared_ptr<const void> memory) noexcept override {
    memory_ = std::move(memory);
    release();
  }

 private:
  friend class FilledLane;
  Poll step() {
    try {
      return task_.poll();
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {  // the engine handles only Medley's errors
      throw Error(ErrorKind::system, fmt::format("the algorithm failed: {}", error.what()));
    }
  }
  Task run(const Algorithm& algorithm) {
    co_await until([this] { return lane_.may_run(sequence_); });
    // Polled: a stream that waited for the tensor would delay other collectives.
    if (device_.frames && call_.dependencies)
      co_await until([this] { return device_.frames->completed(call_.dependencies->ready); });
    co_await algorithm.run(job_);
  }

  FilledLane& lane_;
  Call call_;
  std::uint64_t sequence_;
  DeviceWork device_;
  Messages messages_;
  Job job_;
  Task task_;
  std::shared_ptr<const void> memory_;  ///< what the call points to, for an abandoned transfer
  std::shared_ptr<FilledTransfer> self_;
};

void FilledLane::check_compression(const Call& call, Memory memory) const {
  const bool in_streams = memory != Memory::host && inner_->in_streams();
  const std::string why =
      in_streams ? why_not_compressed_in_streams(call, call.algorithm)
      : memory != Memory::host
          ? fmt::format("{} carries CUDA memory itself; name a host backend, which stages it", backend_)
          : why_not_compressed(call, call.algorithm);
  if (why.empty()) return;
  throw Error(ErrorKind::invalid, fmt::format("{} over {} cannot be compressed: {}", name(call.op), backend_, why),
              {.backend = backend_});
}

void FilledLane::check_algorithm(const Call& call, Memory memory) const {
  if (compress::is_compressed(call.algorithm)) return check_compression(call, memory);
  const bool filled = memory == Memory::host && call.op != Op::send && call.op != Op::recv;
  if (call.algorithm.empty() || (filled && find(call.op, call.algorithm))) return;
  const bool natively = capabilities_.native(call.op, call.dtype, call.reduce, memory);
  const std::vector<std::string> own = natively ? capabilities_.algorithms(call.op) : std::vector<std::string>{};
  if (natively && (call.algorithm == native || std::ranges::find(own, call.algorithm) != own.end())) return;
  std::vector<std::string_view> known;
  if (natively) known.push_back(native);
  known.insert(known.end(), own.begin(), own.end());
  if (filled) std::ranges::copy(names(call.op), std::back_inserter(known));
  throw Error(ErrorKind::invalid,
              fmt::format("{} over {} has no algorithm \"{}\"; it has {}", name(call.op), backend_, call.algorithm,
                          fmt::join(known, ", ")),
              {.backend = backend_});
}

const Algorithm& FilledLane::algorithm_of(const Call& call) const {
  if (call.memory != Memory::host) {
    throw Error(ErrorKind::unavailable,
                fmt::format("{} of {} memory is not native to {}, and only host memory is filled in", name(call.op),
                            name(call.memory), backend_));
  }
  const Algorithm* named = find(call.op, call.algorithm);
  return named ? *named : choose(call, size_);
}

Transfer* FilledLane::start_named(const Call& message) {
  return compress::is_compressed(message.algorithm) ? start_compressed_message(*inner_, message)
                                                    : inner_->start(message);
}

Transfer* FilledLane::start_collective(const Call& call) {
  const std::uint64_t sequence = collectives_++;
  // Checked when it was issued
  const bool natively = call.algorithm.empty() ? is_native(call) : !find(call.op, call.algorithm);
  if (natively) return inner_->start(call);
  if (size_ == 1) {
    do_alone(call);
    return nullptr;
  }
  return start_filled(call, sequence, nullptr);
}

Transfer* FilledLane::start_on_device(Call call, std::shared_ptr<DeviceFrames> frames) {
  call.memory = Memory::host;  // its messages carry pinned memory
  call.stream = nullptr;
  return start_filled(call, collectives_++, std::move(frames));
}

Transfer* FilledLane::start_filled(const Call& call, std::uint64_t sequence, std::shared_ptr<DeviceFrames> frames) {
  TransferRef<FilledTransfer> transfer(
      FilledTransfer::make(*this, call, algorithm_of(call), sequence, std::move(frames)));
  running_.emplace(sequence, transfer.get());
  return first_poll(std::move(transfer));  // the first messages start at once
}

bool FilledLane::may_run(std::uint64_t sequence) const {
  return running_.empty() || running_.begin()->first + tags_ > sequence;
}

void FilledLane::adopt_messages_of(FilledTransfer& transfer) noexcept {
  for (Transfer* message : transfer.messages_.abandon()) orphans_.add(message, transfer.self_);
}

bool FilledLane::poll_abort() noexcept {
  if (!inner_->poll_abort()) return false;
  for (const auto& [sequence, transfer] : running_) adopt_messages_of(*transfer);
  orphans_.abandon();
  return true;
}

bool FilledLane::poll_close() noexcept { return orphans_.poll_close(*this) && inner_->poll_close(); }

}  // namespace medley::algorithms
