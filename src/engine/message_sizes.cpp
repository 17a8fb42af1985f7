#include "engine/message_sizes.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace medley::core {
namespace {

// Ticks, about 13 s: nothing changed for so long, and the peer has heard it
constexpr std::uint64_t longest_interval = 64;

/// Spreads number and size over 64 bits (the finaliser of splitmix64), so that a swap of two sizes changes the sum.
std::uint64_t mixed(std::uint64_t number, std::int64_t bytes) {
  std::uint64_t x = number * 0x9e3779b97f4a7c15u ^ static_cast<std::uint64_t>(bytes);
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

std::int64_t bytes_of(const Call& call) {
  return std::max(call.in_count, call.out_count) * static_cast<std::int64_t>(size_of(call.dtype));
}

/// One end's knowledge of a channel: the sum of its first messages, and the sizes of the last ones.
struct End {
  std::uint64_t count, sum;
  const std::int64_t* last;  ///< a ring, or a list that begins with message `first`
  std::uint64_t first;
  bool ring;

  std::int64_t size(std::uint64_t number) const {
    return last[ring ? (number - 1) % MessageSizes::kept : number - first];
  }
  /// The sum up to message `number`; needs the sizes of all later ones.
  std::uint64_t sum_up_to(std::uint64_t number) const {
    std::uint64_t at = sum;
    for (std::uint64_t i = count; i > number; --i) at -= mixed(i, size(i));
    return at;
  }
};

}  // namespace

// Tag (31 bits), peer (31), send, memory.
std::uint64_t MessageSizes::key_of(const Channel& channel) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(channel.tag)) |
         static_cast<std::uint64_t>(channel.peer) << 31 | static_cast<std::uint64_t>(channel.send) << 62 |
         static_cast<std::uint64_t>(channel.memory) << 63;
}

MessageSizes::Channel MessageSizes::channel_of(std::uint64_t key) {
  return {.peer = static_cast<int>(key >> 31 & 0x7fffffff),
          .tag = static_cast<int>(key & 0x7fffffff),
          .send = (key >> 62 & 1) != 0,
          .memory = static_cast<Memory>(key >> 63)};
}

MessageSizes::ChannelState* MessageSizes::find_or_add(const Channel& channel) {
  const std::uint64_t key = key_of(channel);
  if (const auto found = channels_.find(key); found != channels_.end()) return &found->second;
  return channels_.size() < most_channels ? &channels_[key] : nullptr;
}

void MessageSizes::note(const Call& call) {
  const Channel channel{.peer = call.root, .tag = call.tag, .send = call.op == Op::send, .memory = call.memory};
  const std::int64_t bytes = bytes_of(call);
  const std::lock_guard lock(mutex_);
  ChannelState* const state = find_or_add(channel);
  if (!state) return;
  state->last[state->count++ % kept] = bytes;
  state->sum += mixed(state->count, bytes);
  state->changed = true;
  if (!channel.send || state->listed) return;
  state->listed = true;
  reporting_.push_back(key_of(channel));
}

std::vector<MessageSizes::Report> MessageSizes::due() {
  const std::lock_guard lock(mutex_);
  ++tick_;
  std::vector<Report> reports;
  std::erase_if(reporting_, [&](std::uint64_t key) {
    ChannelState& state = channels_[key];
    if (std::exchange(state.changed, false)) state.interval = 1, state.next_report = tick_;
    if (tick_ < state.next_report || reports.size() == most_reports) return false;
    Report report{.channel = channel_of(key), .count = state.count, .sum = state.sum};
    for (std::uint64_t i = state.count - std::min<std::uint64_t>(state.count, kept); i < state.count; ++i)
      report.last.push_back(state.last[i % kept]);
    reports.push_back(std::move(report));
    state.next_report = tick_ + state.interval;
    state.interval *= 2;
    state.listed = state.interval <= longest_interval;
    return !state.listed;
  });
  return reports;
}

std::optional<MessageSizes::Difference> MessageSizes::differ(const Channel& channel, const ChannelState& mine,
                                                             const Report& theirs) {
  const End here{mine.count, mine.sum, mine.last.data(), 0, true};
  const End there{theirs.count, theirs.sum, theirs.last.data(), theirs.count - theirs.last.size() + 1, false};
  const std::uint64_t both = std::min(here.count, there.count);
  // Sizes after this
  const std::uint64_t known = std::max({here.count - std::min<std::uint64_t>(here.count, kept), there.first - 1});
  // Or too far apart to compare yet
  if (both < known || here.sum_up_to(both) == there.sum_up_to(both)) return std::nullopt;
  for (std::uint64_t i = known + 1; i <= both; ++i) {
    if (here.size(i) != there.size(i)) return Difference{channel, i, there.size(i), here.size(i)};
  }
  return Difference{channel, known + 1};
}

std::optional<MessageSizes::Difference> MessageSizes::compare(int from, Report report) {
  Channel channel = report.channel;
  channel.peer = from;
  channel.send = false;
  if (report.last.size() > kept || report.last.size() > report.count) return std::nullopt;  // not ours
  const std::lock_guard lock(mutex_);
  ChannelState* const state = find_or_add(channel);
  if (!state) return std::nullopt;
  const auto found = differ(channel, *state, report);
  if (!state->heard) heard_.push_back(key_of(channel));
  state->heard = std::move(report);
  return found;
}

std::optional<MessageSizes::Difference> MessageSizes::compare_heard() {
  const std::lock_guard lock(mutex_);
  std::optional<Difference> found;
  std::erase_if(heard_, [&](std::uint64_t key) {
    ChannelState& state = channels_[key];
    if (!found) found = differ(channel_of(key), state, *state.heard);
    if (state.count < state.heard->count) return false;
    state.heard.reset();
    return true;
  });
  return found;
}

Error size_error(const MessageSizes::Difference& difference, int receiver) {
  const auto& [channel, number, sent, posted] = difference;
  const std::string counts = sent < 0 ? "one of the messages before it had another size than its receive"
                                      : fmt::format("rank {} sent {} bytes but rank {} posted a receive of {} bytes",
                                                    channel.peer, sent, receiver, posted);
  return Error(
      ErrorKind::mismatch,
      fmt::format(
          "message #{} from rank {} to rank {} with tag {}: {}; {} (a backend that only one end names also numbers them "
          "differently: name it on both)",
          number, channel.peer, receiver, channel.tag, counts, exact_sizes_rule),
      {.ranks = {channel.peer, receiver}});
}

}  // namespace medley::core
