#include "cost/run_pipeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <medley/error.hpp>
#include <span>
#include <unordered_map>

namespace medley::cost {
namespace {

/// Sends from one stage to another, matched in order, as NCCL does.
struct Channel {
  std::vector<double> posted;
  std::size_t taken = 0;
};

/// The k-th collective of one group over several stages.
struct Meeting {
  std::size_t arrived = 0;
  double latest = 0;
};

/// A receive that was issued and has not been seen to complete.
struct PendingReceive {
  int token, from;
  std::size_t number;  ///< on its channel
  double posted, us;
};

struct Running {
  const StageProgram* program = nullptr;
  std::size_t next = 0;
  bool posted = false;  ///< the sends of items[next], or the arrival at it, are already announced
  double now = 0;       ///< GPU time
  double host = 0;      ///< when the host has issued everything the GPU has run so far
  double busy = 0;      ///< when the running collectives end
  Spent spent{};
  std::array<double, group_count> free{};
  std::map<int, UnderWay> under_way;
  std::vector<PendingReceive> receives;
  std::array<std::size_t, group_count> met{};

  bool done() const { return next == program->items.size(); }
  void pass(Cause cause, double until) {
    if (until <= now) return;
    at(spent, cause) += until - now;
    now = until;
  }
  void begin(int token, double end, const EntryCost& cost) { under_way[token].join(end, cost); }
};

class Pipeline {
 public:
  explicit Pipeline(const std::vector<StageProgram>& programs) : stages_(programs.size()) {
    for (std::size_t i = 0; i < programs.size(); ++i) {
      stages_[i].program = &programs[i];
      std::array<std::size_t, group_count> count{};
      for (const StageItem& item : programs[i].items) {
        if (item.type != StageItem::Type::meet) continue;
        const std::size_t k = count[item.cost.link]++;
        auto& expected = members_[item.cost.link];
        if (expected.size() <= k) expected.resize(k + 1);
        ++expected[k];
      }
    }
    for (std::size_t g = 0; g < group_count; ++g) meetings_[g].resize(members_[g].size());
  }

  std::vector<StageTime> run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t i = 0; i < stages_.size(); ++i) moved |= advance(i);
      for (std::size_t i = stages_.size(); i-- > 0;) moved |= advance(i);
    }
    std::vector<StageTime> times;
    for (std::size_t i = 0; i < stages_.size(); ++i) {
      if (!stages_[i].done()) {
        throw Error(ErrorKind::invalid,
                    fmt::format("schedule: pipeline stage {} waits forever at its item {}", i, stages_[i].next));
      }
      times.push_back({.end_us = stages_[i].now, .spent = stages_[i].spent, .host_us = stages_[i].host});
    }
    return times;
  }

 private:
  bool advance(std::size_t stage) {
    Running& at_stage = stages_[stage];
    const std::size_t before = at_stage.next;
    const bool posted = at_stage.posted;
    while (!at_stage.done() && step(stage, at_stage, at_stage.program->items[at_stage.next])) {
      ++at_stage.next;
      at_stage.posted = false;
    }
    return at_stage.next != before || at_stage.posted != posted;
  }

  /// Executes one item; false when another stage must advance first.
  bool step(std::size_t stage, Running& r, const StageItem& item) {
    switch (item.type) {
      case StageItem::Type::spend: {
        const Spent& spent = r.program->spent[item.block];
        double us = 0;
        for (const double part : spent) us += part * item.repeat;
        const double stretched = r.program->overlap.stretched(us, r.now, r.busy), factor = us > 0 ? stretched / us : 1;
        for (std::size_t i = 0; i < cause_count; ++i) r.spent[i] += spent[i] * item.repeat * factor;
        r.now += stretched;
        // Kernels cannot run before the host has issued them; the host runs ahead while the GPU is busy.
        r.host += item.host_us * item.repeat;
        if (!r.program->host_ahead) r.pass(Cause::launch, r.host);
        return true;
      }
      case StageItem::Type::comm: {
        r.host += item.cost.host_us;
        const double end = std::max(r.now, r.free[item.cost.link]) + item.cost.us;
        r.free[item.cost.link] = end;
        r.pass(item.cost.cause, end);
        return true;
      }
      case StageItem::Type::async: {
        r.host += item.cost.host_us;
        const double end = std::max(r.now, r.free[item.cost.link]) + item.cost.us;
        r.free[item.cost.link] = end;
        r.busy = std::max(r.busy, end);
        r.begin(item.token, end, item.cost);
        return true;
      }
      case StageItem::Type::wait: return wait(stage, r, item.token);
      case StageItem::Type::transfer: return transfer(stage, r, item);
      case StageItem::Type::meet: return meet(r, item);
    }
    return true;
  }

  Channel& channel(std::size_t from, std::size_t to) { return channels_[from * stages_.size() + to]; }

  bool wait(std::size_t stage, Running& r, int token) {
    for (const PendingReceive& receive : r.receives) {
      if (receive.token != token) continue;
      const Channel& source = channel(static_cast<std::size_t>(receive.from), stage);
      if (source.posted.size() <= receive.number) return false;
    }
    for (const PendingReceive& receive : r.receives) {
      if (receive.token != token) continue;
      const double sent = channel(static_cast<std::size_t>(receive.from), stage).posted[receive.number];
      r.pass(Cause::bubble, sent);
      r.pass(Cause::pp, std::max(receive.posted, sent) + receive.us);
    }
    std::erase_if(r.receives, [&](const PendingReceive& receive) { return receive.token == token; });
    if (const auto op = r.under_way.find(token); op != r.under_way.end()) {
      r.pass(op->second.cause, op->second.done(r.now));
      r.under_way.erase(op);
    }
    return true;
  }

  /// Sends start at once (the receiver's buffer is or will be there: schedules are matched); receives wait.
  bool transfer(std::size_t stage, Running& r, const StageItem& item) {
    const std::span<const Transfer> transfers(r.program->transfers.data() + item.first, item.last - item.first);
    double sends_end = r.now;
    for (const Transfer& t : transfers) {
      if (!t.send) continue;
      if (!r.posted) channel(stage, static_cast<std::size_t>(t.stage)).posted.push_back(r.now);
      sends_end = std::max(sends_end, r.now + t.us);
    }
    r.posted = true;
    if (item.token != 0) {
      r.begin(item.token, sends_end, item.cost);
      for (const Transfer& t : transfers) {
        if (t.send) continue;
        r.receives.push_back(
            {item.token, t.stage, channel(static_cast<std::size_t>(t.stage), stage).taken++, r.now, t.us});
      }
      return true;
    }
    return receive_all(stage, r, transfers, sends_end);
  }

  bool receive_all(std::size_t stage, Running& r, std::span<const Transfer> transfers, double sends_end) {
    for (const Transfer& t : transfers) {
      if (t.send) continue;
      const auto wanted = static_cast<std::size_t>(std::ranges::count_if(
          transfers, [&](const Transfer& other) { return !other.send && other.stage == t.stage; }));
      const Channel& source = channel(static_cast<std::size_t>(t.stage), stage);
      if (source.posted.size() < source.taken + wanted) return false;
    }
    double sent = r.now, end = sends_end;
    for (const Transfer& t : transfers) {
      if (t.send) continue;
      Channel& source = channel(static_cast<std::size_t>(t.stage), stage);
      const double left = source.posted[source.taken++];
      sent = std::max(sent, left);
      end = std::max(end, std::max(r.now, left) + t.us);
    }
    r.pass(Cause::bubble, sent);
    r.pass(Cause::pp, end);
    r.host = std::max(r.host, r.now);  // frameworks wait for blocking messages on the host
    return true;
  }

  bool meet(Running& r, const StageItem& item) {
    const std::size_t group = item.cost.link, k = r.met[group];
    Meeting& meeting = meetings_[group][k];
    if (!r.posted) {
      ++meeting.arrived;
      meeting.latest = std::max(meeting.latest, r.now);
      r.posted = true;
    }
    if (meeting.arrived < members_[group][k]) return false;
    ++r.met[group];
    const double end = meeting.latest + item.cost.us;
    if (item.token != 0) {
      r.begin(item.token, end, item.cost);
      return true;
    }
    r.pass(Cause::bubble, meeting.latest);
    r.pass(item.cost.cause, end);
    return true;
  }

  std::vector<Running> stages_;
  std::unordered_map<std::size_t, Channel> channels_;  ///< by from × stages + to; few of the pairs communicate
  std::array<std::vector<std::size_t>, group_count> members_;
  std::array<std::vector<Meeting>, group_count> meetings_;
};

}  // namespace

std::vector<StageTime> run_pipeline(const std::vector<StageProgram>& stages) { return Pipeline(stages).run(); }

}  // namespace medley::cost
