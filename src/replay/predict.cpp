#include "replay/predict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <medley/error.hpp>

namespace medley::replay {
namespace {

/// Where ranks come together: a collective of a group, or a message.
struct Meeting {
  std::size_t expected = 0, arrived = 0;
  double latest = 0;  ///< µs when the last of them came
  double end = -1;    ///< µs; -1: not all have come
};

using MeetingId = std::tuple<std::vector<int>, bool, std::int64_t>;  // ranks, whether a message, number

struct Rank {
  RankSchedule schedule;
  std::size_t at = 0;
  double now = 0;
  std::map<std::pair<std::vector<int>, bool>, std::int64_t> numbers;
  std::vector<std::pair<int, MeetingId>> pending;  ///< by token
  std::vector<MeetingId> waits;                    ///< what it stands still for
};

class Simulation {
 public:
  Simulation(const WorldSchedule& schedule, const std::vector<int>& hosts, const ReplayOptions& options,
             OperationTimes& times)
      : hosts_(hosts), options_(options), times_(times), ranks_(hosts.size()) {
    for (std::size_t r = 0; r < ranks_.size(); ++r)
      ranks_[r].schedule = schedule.of(static_cast<int>(r), static_cast<int>(ranks_.size()));
  }

  Prediction run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (Rank& rank : ranks_) moved = advance(rank) || moved;
    }
    for (const Rank& rank : ranks_) {
      if (rank.at < rank.schedule.actions.size() || !rank.waits.empty())
        throw Error(
            ErrorKind::invalid,
            fmt::format("the schedule never ends: rank {} waits at entry {} for others that do not come",
                        rank.schedule.rank, rank.at));
      result_.step_us = std::max(result_.step_us, rank.now);
    }
    return result_;
  }

 private:
  /// Goes on as far as it can; whether it did.
  bool advance(Rank& rank) {
    bool moved = false;
    while (true) {
      if (!settle(rank)) return moved;
      const auto& actions = rank.schedule.actions;
      if (rank.at >= actions.size()) {
        if (rank.pending.empty()) return moved;
        for (auto& [token, id] : std::exchange(rank.pending, {})) rank.waits.push_back(id);
        moved = true;
        continue;
      }
      moved = true;
      const Action& action = actions[rank.at];
      if (action.kind == Kind::compute) rank.now += compute_seconds(action, options_) * 1e6;
      if (action.kind == Kind::wait) wait_for(rank, action.token);
      const std::size_t end = action.kind == Kind::comm ? batch_end(actions, rank.at) : rank.at + 1;
      for (; rank.at < end; ++rank.at) {
        if (actions[rank.at].kind == Kind::comm) arrive(rank, actions[rank.at]);
      }
    }
  }

  static std::size_t batch_end(const std::vector<Action>& actions, std::size_t first) {
    std::size_t end = first + 1;
    while (actions[first].batch != 0 && end < actions.size() && actions[end].kind == Kind::comm &&
           actions[end].batch == actions[first].batch)
      ++end;
    return end;
  }

  /// Whether what the rank stands still for is over.
  bool settle(Rank& rank) {
    for (const MeetingId& id : rank.waits) {
      if (meetings_.at(id).end < 0) return false;
    }
    for (const MeetingId& id : rank.waits) rank.now = std::max(rank.now, meetings_.at(id).end);
    rank.waits.clear();
    return true;
  }

  static void wait_for(Rank& rank, int token) {
    for (const auto& [of, id] : rank.pending) {
      if (of == token) rank.waits.push_back(id);
    }
    std::erase_if(rank.pending, [&](const auto& p) { return p.first == token; });
  }

  void arrive(Rank& rank, const Action& action) {
    const bool message = action.op == Op::send || action.op == Op::recv;
    std::vector<int> who = rank.schedule.groups.at(action.group);
    if (message) {
      who = {rank.schedule.rank, action.peer};
      if (action.op == Op::recv) std::swap(who[0], who[1]);
    }
    if (who.size() < 2) return;
    const MeetingId id{who, message, rank.numbers[{who, message}]++};
    Meeting& meeting = meetings_[id];
    meeting.expected = who.size();
    meeting.latest = std::max(meeting.latest, rank.now);
    if (++meeting.arrived == meeting.expected) {
      double& free = free_[{who, message}];
      meeting.end = std::max(meeting.latest, free) + time_of(action, who);
      free = meeting.end;
    }
    if (action.token != 0)
      rank.pending.emplace_back(action.token, id);
    else
      rank.waits.push_back(id);
  }

  double time_of(const Action& action, const std::vector<int>& who) {
    std::map<int, int> of_host;
    int fullest = 0;
    for (const int rank : who) fullest = std::max(fullest, ++of_host[hosts_[static_cast<std::size_t>(rank)]]);
    const auto us =
        times_.us(action.op, action.dtype, scaled_bytes(action.bytes, action.dtype, options_.scale),
                  {static_cast<int>(of_host.size()), fullest});
    if (!us) ++result_.unknown;
    return us.value_or(0);
  }

  const std::vector<int>& hosts_;
  const ReplayOptions& options_;
  OperationTimes& times_;
  std::vector<Rank> ranks_;
  std::map<MeetingId, Meeting> meetings_;
  std::map<std::pair<std::vector<int>, bool>, double> free_;  ///< operations of one group follow each other
  Prediction result_;
};

}  // namespace

double compute_seconds(const Action& action, const ReplayOptions& options) {
  if (options.tflops <= 0) return 0;
  return options.scale * (action.flops / (options.tflops * 1e12) +
                          static_cast<double>(action.memory_bytes) / (options.memory_gbs * 1e9));
}

Prediction predict(const WorldSchedule& schedule, const std::vector<int>& hosts, const ReplayOptions& options,
                   OperationTimes& times) {
  return Simulation(schedule, hosts, options, times).run();
}

}  // namespace medley::replay
