// Sizes of the messages of one comm with exact sizes (CommOptions::exact), where they decide between lanes: both ends
// note every message at issue, and the control threads compare the notes. So a receive whose size differs from its
// message is found even if the two went to different lanes, where neither library sees both.
#pragma once

#include <array>
#include <cstdint>
#include <medley/backend.hpp>
#include <medley/export.hpp>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace medley::core {

/// The end of errors about sizes.
inline constexpr const char* exact_sizes_rule =
    "a receive must be as large as its message on this comm, which declares exact sizes";

class MEDLEY_API MessageSizes {
 public:
  /// The last sizes of a channel that are kept, so that an error can name them
  static constexpr std::size_t kept = 32;
  static constexpr std::size_t most_channels = 4096;  ///< peers and tags beyond this are not compared
  static constexpr std::size_t most_reports = 64;     ///< in one tick

  /// The messages of one peer, direction, tag and kind of memory, which match in order. Those that name their backend
  /// are not among them: they take one lane, which compares the sizes itself.
  struct Channel {
    int peer = 0, tag = 0;
    bool send = false;
    Memory memory{};
  };
  /// What a sender has issued on a channel: how many messages, a sum over number and size of each, the last sizes.
  struct Report {
    Channel channel{};  ///< as its sender sees it: `peer` is the receiver
    std::uint64_t count = 0;
    std::uint64_t sum = 0;
    std::vector<std::int64_t> last{};
  };
  /// The first message found whose ends differ; counts are in bytes, -1 where no longer known.
  struct Difference {
    Channel channel{};         ///< as the receiver sees it: `peer` is the sender
    std::uint64_t number = 0;  ///< from 1
    std::int64_t sent = -1, posted = -1;
  };

  /// At issue, under the engine's lock.
  void note(const Call& call);

  // By the control thread; none of these waits.
  /// Reports for the receivers of channels that have changed, and again at growing intervals: a peer may not have made
  /// the comm yet.
  std::vector<Report> due();
  /// Compares a peer's report with the receives issued here, now and, as far as they are not issued yet, in
  /// compare_heard().
  std::optional<Difference> compare(int from, Report report);
  std::optional<Difference> compare_heard();

 private:
  struct ChannelState {
    std::uint64_t count = 0, sum = 0;
    std::array<std::int64_t, kept> last{};        ///< of message i at (i - 1) % kept
    bool changed = false, listed = false;         ///< of a send: since the last report; whether it is in reporting_
    std::uint64_t next_report = 0, interval = 1;  ///< in ticks
    std::optional<Report> heard{};                ///< of a receive: what is still to be compared
  };
  static std::uint64_t key_of(const Channel& channel);
  static Channel channel_of(std::uint64_t key);
  ChannelState* find_or_add(const Channel& channel);
  static std::optional<Difference> differ(const Channel& channel, const ChannelState& mine, const Report& theirs);

  /// Held for a few instructions: note() has the engine's lock, and the control thread must not wait either
  std::mutex mutex_;
  std::unordered_map<std::uint64_t, ChannelState> channels_;
  std::vector<std::uint64_t> reporting_, heard_;  ///< channels with reports to send; channels with a report to compare
  std::uint64_t tick_ = 0;
};

/// What both ends get.
Error size_error(const MessageSizes::Difference& difference, int receiver);

}  // namespace medley::core
