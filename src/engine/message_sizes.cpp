#include "engine/message_sizes.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace medley::core {
namespace {

constexpr std::uint64_t longest_interval = 64;   // ticks, about 13 s: nothing changed for so long, and the peer has heard it

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

/// One end's knowledge of a line: the sum of its first messages, and the sizes of the last ones.
struct End {
  std::uint64_t count, sum;
  const std::int64_t* last;   ///< a ring, or a list that begins with message `first`
  std::uint64_t first;
  bool ring;

  std::int64_t size(std::uint64_t number) const { return last[ring ? (number - 1) % MessageSizes::kept : number - first]; }
  /// The sum up to message `number`; needs the sizes of all later ones.
  std::uint64_t sum_up_to(std::uint64_t number) const {
    std::uint64_t at = sum;
    for (std::uint64_t i = count; i > number; --i) at -= mixed(i, size(i));
    return at;
  }
};

}  // namespace

// Tag (31 bits), peer (31), send, memory.
std::uint64_t MessageSizes::key_of(const LineName& name) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(name.tag)) | static_cast<std::uint64_t>(name.peer) << 31 |
         static_cast<std::uint64_t>(name.send) << 62 | static_cast<std::uint64_t>(name.memory) << 63;
}

MessageSizes::LineName MessageSizes::name_of(std::uint64_t key) {
  return {.peer = static_cast<int>(key >> 31 & 0x7fffffff), .tag = static_cast<int>(key & 0x7fffffff),
          .send = (key >> 62 & 1) != 0, .memory = static_cast<Memory>(key >> 63)};
}

MessageSizes::Line* MessageSizes::find_or_add(const LineName& name) {
  const std::uint64_t key = key_of(name);
  if (const auto found = lines_.find(key); found != lines_.end()) return &found->second;
  return lines_.size() < most_lines ? &lines_[key] : nullptr;
}

void MessageSizes::note(const Call& call) {
  const LineName name{.peer = call.root, .tag = call.tag, .send = call.op == Op::send, .memory = call.memory};
  const std::int64_t bytes = bytes_of(call);
  const std::lock_guard lock(mutex_);
  Line* const line = find_or_add(name);
  if (!line) return;
  line->last[line->count++ % kept] = bytes;
  line->sum += mixed(line->count, bytes);
  line->changed = true;
  if (!name.send || line->listed) return;
  line->listed = true;
  reporting_.push_back(key_of(name));
}

std::vector<MessageSizes::Report> MessageSizes::due() {
  const std::lock_guard lock(mutex_);
  ++tick_;
  std::vector<Report> reports;
  std::erase_if(reporting_, [&](std::uint64_t key) {
    Line& line = lines_[key];
    if (std::exchange(line.changed, false)) line.interval = 1, line.next_report = tick_;
    if (tick_ < line.next_report || reports.size() == most_reports) return false;
    Report report{.line = name_of(key), .count = line.count, .sum = line.sum};
    for (std::uint64_t i = line.count - std::min<std::uint64_t>(line.count, kept); i < line.count; ++i) report.last.push_back(line.last[i % kept]);
    reports.push_back(std::move(report));
    line.next_report = tick_ + line.interval;
    line.interval *= 2;
    line.listed = line.interval <= longest_interval;
    return !line.listed;
  });
  return reports;
}

std::optional<MessageSizes::Difference> MessageSizes::differ(const LineName& name, const Line& mine, const Report& theirs) {
  const End here{mine.count, mine.sum, mine.last.data(), 0, true};
  const End there{theirs.count, theirs.sum, theirs.last.data(), theirs.count - theirs.last.size() + 1, false};
  const std::uint64_t both = std::min(here.count, there.count);
  const std::uint64_t known = std::max({here.count - std::min<std::uint64_t>(here.count, kept), there.first - 1});   // sizes after this
  if (both < known || here.sum_up_to(both) == there.sum_up_to(both)) return std::nullopt;   // or too far apart to compare yet
  for (std::uint64_t i = known + 1; i <= both; ++i) {
    if (here.size(i) != there.size(i)) return Difference{name, i, there.size(i), here.size(i)};
  }
  return Difference{name, known + 1};
}

std::optional<MessageSizes::Difference> MessageSizes::compare(int from, Report report) {
  LineName name = report.line;
  name.peer = from;
  name.send = false;
  if (report.last.size() > kept || report.last.size() > report.count) return std::nullopt;   // not ours
  const std::lock_guard lock(mutex_);
  Line* const line = find_or_add(name);
  if (!line) return std::nullopt;
  const auto found = differ(name, *line, report);
  if (!line->heard) heard_.push_back(key_of(name));
  line->heard = std::move(report);
  return found;
}

std::optional<MessageSizes::Difference> MessageSizes::compare_heard() {
  const std::lock_guard lock(mutex_);
  std::optional<Difference> found;
  std::erase_if(heard_, [&](std::uint64_t key) {
    Line& line = lines_[key];
    if (!found) found = differ(name_of(key), line, *line.heard);
    if (line.count < line.heard->count) return false;
    line.heard.reset();
    return true;
  });
  return found;
}

Error size_error(const MessageSizes::Difference& difference, int receiver) {
  const auto& [line, number, sent, posted] = difference;
  const std::string counts = sent < 0 ? "one of the messages before it had another size than its receive"
                                      : fmt::format("rank {} sent {} bytes but rank {} posted a receive of {} bytes", line.peer, sent, receiver, posted);
  return Error(ErrorKind::mismatch,
               fmt::format("message #{} from rank {} to rank {} with tag {}: {}; this comm was declared to have messages of exact size "
                           "(a backend that only one end names also numbers them differently: name it on both)", number,
                           line.peer, receiver, line.tag, counts),
               {.ranks = {line.peer, receiver}});
}

}  // namespace medley::core
