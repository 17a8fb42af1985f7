#include "replay/predict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <medley/error.hpp>

#include "base/host_blocks.hpp"
#include "replay/compute_time.hpp"
#include "replay/places.hpp"
#include "replay/sharing.hpp"

namespace medley::replay {
namespace {

struct Operation {
  Meeting meeting;
  double left_us = 0;  ///< as if it ran alone
  bool done = false;
};

/// A queue: the operations of a group, or the messages from one rank to another, run in sequence.
struct Queue {
  std::deque<Operation*> all;  ///< stable addresses: ranks refer to them
  std::size_t running = 0;     ///< the first that is not done
};
using QueueId = std::pair<std::vector<int>, bool>;  // ranks, and whether it holds messages

struct Rank {
  RankSchedule schedule;
  std::size_t at = 0;
  double free_at = 0;                                 ///< until then it computes
  std::map<QueueId, std::size_t> numbers;             ///< how many it has reached
  std::vector<std::pair<int, Operation*>> pending{};  ///< by token
  std::vector<Operation*> waits{};                    ///< what it is blocked on
};

class Simulation {
 public:
  Simulation(const WorldSchedule& schedule, const Places& places, const ReplayOptions& options, const TimeOf& time_of)
      : places_(places), options_(options), time_of_(time_of), ranks_(places.hosts.size()) {
    for (std::size_t r = 0; r < ranks_.size(); ++r)
      ranks_[r].schedule = schedule.of(static_cast<int>(r), static_cast<int>(ranks_.size()));
  }

  Prediction run() {
    while (true) {
      for (bool moved = true; moved;) {
        moved = false;
        for (Rank& rank : ranks_) moved = advance(rank) || moved;
      }
      if (!pass_time()) break;
    }
    for (const Rank& rank : ranks_) {
      if (rank.at < rank.schedule.actions.size() || !rank.waits.empty())
        throw Error(ErrorKind::invalid,
                    fmt::format("the schedule never ends: rank {} waits at entry {} for others that do not come",
                                rank.schedule.rank, rank.at));
    }
    result_.step_us = now_;
    return std::move(result_);
  }

 private:
  /// Advances as far as it can now; returns whether it did.
  bool advance(Rank& rank) {
    bool moved = false;
    while (rank.free_at <= now_) {
      std::erase_if(rank.waits, [](const Operation* operation) { return operation->done; });
      if (!rank.waits.empty()) return moved;
      const auto& actions = rank.schedule.actions;
      if (rank.at >= actions.size()) {
        for (auto& [token, operation] : std::exchange(rank.pending, {})) rank.waits.push_back(operation);
        if (rank.waits.empty()) return moved;
        continue;
      }
      moved = true;
      const Action& action = actions[rank.at];
      if (action.kind == Kind::compute) rank.free_at = now_ + compute_seconds(action, options_) * 1e6;
      if (action.kind == Kind::wait) wait_for(rank, action.token);
      const std::size_t end = action.kind == Kind::comm ? batch_end(actions, rank.at) : rank.at + 1;
      for (; rank.at < end; ++rank.at) {
        if (actions[rank.at].kind == Kind::comm) arrive(rank);
      }
    }
    return moved;
  }

  static void wait_for(Rank& rank, int token) {
    for (const auto& [of, operation] : rank.pending) {
      if (of == token) rank.waits.push_back(operation);
    }
    std::erase_if(rank.pending, [&](const auto& p) { return p.first == token; });
  }

  void arrive(Rank& rank) {
    const Action& action = rank.schedule.actions[rank.at];
    const bool message = action.op == Op::send || action.op == Op::recv;
    std::vector<int> who = rank.schedule.groups.at(action.group);
    if (message) {
      who = {rank.schedule.rank, action.peer};
      if (action.op == Op::recv) std::swap(who[0], who[1]);
    }
    if (who.size() < 2) return;
    const QueueId id{who, message};
    Queue& queue = queues_[id];
    const std::size_t number = rank.numbers[id]++;
    if (number == queue.all.size()) {
      operations_.push_back({{who, message, std::vector<std::size_t>(who.size(), missing)}});
      queue.all.push_back(&operations_.back());
    }
    Operation& operation = *queue.all[number];
    auto& entries = operation.meeting.entries;
    const auto me = std::find(who.begin(), who.end(), rank.schedule.rank) - who.begin();
    entries[static_cast<std::size_t>(me)] = rank.at;
    if (std::find(entries.begin(), entries.end(), missing) == entries.end()) {
      const auto us = time_of_(action, who);
      if (!us) ++result_.unknown;
      operation.left_us = us.value_or(0);
      result_.order.push_back(operation.meeting);
    }
    if (action.token != 0) rank.pending.emplace_back(action.token, &operation);
    else rank.waits.push_back(&operation);
  }

  /// The operations that all their ranks have reached and that are first in their queue.
  std::vector<Operation*> running() {
    std::vector<Operation*> out;
    for (auto& [id, queue] : queues_) {
      while (queue.running < queue.all.size() && queue.all[queue.running]->done) ++queue.running;
      if (queue.running == queue.all.size()) continue;
      Operation* first = queue.all[queue.running];
      const auto& entries = first->meeting.entries;
      if (std::find(entries.begin(), entries.end(), missing) == entries.end()) out.push_back(first);
    }
    return out;
  }

  /// Advances to the next completion; false when there is none.
  bool pass_time() {
    const std::vector<Operation*> active = running();
    std::vector<const std::vector<int>*> who;
    for (const Operation* operation : active) who.push_back(&operation->meeting.who);
    const std::vector<double> speed = speeds(who, places_);
    double next = std::numeric_limits<double>::infinity();
    for (const Rank& rank : ranks_) {
      if (rank.free_at > now_) next = std::min(next, rank.free_at);
    }
    std::vector<double> ends;
    for (std::size_t i = 0; i < active.size(); ++i) ends.push_back(now_ + active[i]->left_us / speed[i]);
    for (const double end : ends) next = std::min(next, end);
    if (next == std::numeric_limits<double>::infinity()) return false;
    for (std::size_t i = 0; i < active.size(); ++i) {
      active[i]->left_us -= (next - now_) * speed[i];
      active[i]->done = ends[i] <= next;
    }
    now_ = next;
    return true;
  }

  static constexpr std::size_t missing = std::numeric_limits<std::size_t>::max();
  const Places& places_;
  const ReplayOptions& options_;
  const TimeOf& time_of_;
  std::vector<Rank> ranks_;
  std::deque<Operation> operations_;
  std::map<QueueId, Queue> queues_;
  double now_ = 0;
  Prediction result_;
};

}  // namespace

TimeOf time_on_machine(const cost::Machine& machine, double scale) {
  return time_on_links(cost::LinkTime(machine), machine, scale);
}

TimeOf time_on_links(cost::LinkTime links, const cost::Machine& machine, double scale) {
  return [machine, links = std::move(links), scale](const Action& action, const std::vector<int>& who) {
    const auto bytes = static_cast<double>(scaled_bytes(action.bytes, action.dtype, scale));
    if (action.op == Op::send || action.op == Op::recv) {
      const int per_host = machine.gpus_per_host;
      return std::optional<double>(links.point_to_point_us(bytes, who[0] / per_host == who[1] / per_host));
    }
    const std::vector<plan::Count> ranks(who.begin(), who.end());
    return std::optional<double>(links.collective_us(action.op, bytes, cost::group_shape(ranks, machine)));
  };
}

TimeOf time_by_table(OperationTimes& times, const std::vector<int>& hosts, double scale) {
  return [&times, hosts, scale](const Action& action, const std::vector<int>& who) {
    const std::vector<int> places = hosts_of_ranks(who, hosts);
    return times.us(action.op, action.dtype, scaled_bytes(action.bytes, action.dtype, scale), route::shape_of(places),
                    core::in_equal_blocks(places));
  };
}

Prediction predict(const WorldSchedule& schedule, const Places& places, const ReplayOptions& options,
                   const TimeOf& time_of) {
  return Simulation(schedule, places, options, time_of).run();
}

}  // namespace medley::replay
