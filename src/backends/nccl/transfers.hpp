// Started operations of an nccl lane: collectives, messages to others, messages to oneself.
#pragma once

#include <medley/sdk/recycled.hpp>

#include "backends/nccl/collectives.hpp"
#include "backends/nccl/lane.hpp"

namespace medley::nccl {

/// All are launched first, perhaps after some polls, and complete when their stream has reached them.
class StreamTransfer : public Transfer {
 public:
  StreamTransfer(NcclLane& lane, Track& track, const Call& call) : lane_(lane), track_(track), call_(call) {}
  Poll poll() override;
  bool launched() override { return number_ != 0; }
  bool order(void* stream) override;
  std::vector<int> awaited() const override;
  DeviceTimes device_times() const override { return number_ == 0 ? DeviceTimes{} : track_.take_times(number_); }

 protected:
  /// Progresses the launch; true when everything is in the stream.
  virtual bool launch() = 0;
  /// poll() calls it once, when the stream has passed the operation.
  virtual void finish() {}
  /// Called while it runs in the stream.
  virtual void look() {}
  /// What NCCL divides it into, at most, for the network.
  virtual std::size_t pieces() const { return 1; }
  void note_launched() { number_ = track_.launched(pieces()); }

  NcclLane& lane_;
  Track& track_;
  Call call_;
  std::uint64_t number_ = 0;
  std::optional<Error> failed_;  ///< of a launch
};

class CollectiveTransfer final : public StreamTransfer, public Recycled<CollectiveTransfer> {
 public:
  CollectiveTransfer(NcclLane& lane, const Call& call);
  /// True when it is in the stream at once, which is nearly always.
  bool begin();
  std::uint64_t number() const { return number_; }

 private:
  bool launch() override;
  CommView view() const;
  Task task_;
};

class MessageTransfer final : public StreamTransfer, public Recycled<MessageTransfer> {
 public:
  MessageTransfer(NcclLane& lane, Channel& channel, const Call& call)
      : StreamTransfer(lane, channel.track(), call), channel_(channel) {}
  int source() const override { return call_.op == Op::recv ? call_.root : -1; }
  bool begin();
  std::uint64_t number() const { return number_; }

 private:
  ~MessageTransfer() override;
  bool launch() override;
  void finish() override;
  void look() override;
  std::size_t pieces() const override { return Channel::pieces(bytes()); }
  void compare() const;
  std::uint64_t bytes() const {
    return static_cast<std::uint64_t>(call_.op == Op::send ? call_.in_count : call_.out_count) * size_of(call_.dtype);
  }

  Channel& channel_;
  MessageHeader* header_ = nullptr;
  bool begun_ = false;
};

/// Waits for its counterpart of the same tag, then both become one copy.
class SelfTransfer final : public StreamTransfer {
 public:
  SelfTransfer(NcclLane& lane, Track& track, const Call& call) : StreamTransfer(lane, track, call) {}
  int source() const override { return call_.op == Op::recv ? call_.root : -1; }
  void begin();

 private:
  ~SelfTransfer() override;
  bool launch() override { return number_ != 0; }
  void finish() override;
  std::int64_t bytes() const {
    return (call_.op == Op::send ? call_.in_count : call_.out_count) * static_cast<std::int64_t>(size_of(call_.dtype));
  }
  std::int64_t came_ = 0;
};

}  // namespace medley::nccl
