#include "soak/ideal_machine.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace medley::soak {
namespace {

/// A collective, a message or the creation of a comm: all its ranks must start it before it completes.
struct Unit {
  int parties = 0;
  int started = 0;
  bool complete() const { return parties > 0 && started == parties; }
};

/// One rank's part in a unit.
struct Instance {
  int unit;
  std::vector<Interval> accesses{};
  /// The queue it starts in: a comm's collectives, or one direction of a pair with one tag on one backend.
  std::tuple<int, int, int, int, std::string> queue{};
  bool started = false;
};

struct Rank {
  std::vector<Instance> issued{};  ///< in order of issue
  int phase = 0;
  std::vector<std::size_t> position{};  ///< of each thread, in its stream
  std::vector<bool> entered{};          ///< whether the action at that position has already issued and now waits
};

class Machine {
 public:
  explicit Machine(const Program& program) : program_(program), ranks_(static_cast<std::size_t>(program.ranks)) {
    for (const Step& step : program.steps) {
      first_unit_.push_back(static_cast<int>(units_.size()));
      const auto members = static_cast<int>(program.comm(step.comm).members.size());
      if (step.packets.empty()) units_.push_back({members, 0});
      for (const Packet& p : step.packets) units_.push_back({p.from == p.to ? 1 : 2, 0});
    }
    for (Rank& rank : ranks_) enter_phase(rank, 0);
  }

  Verdict run() {
    for (bool moved = true; moved && verdict_.mistake.empty();) {
      moved = false;
      for (int r = 0; r < program_.ranks; ++r) moved = advance(r) || moved;
      for (Rank& rank : ranks_) moved = start_what_can(rank) || moved;
    }
    for (int r = 0; r < program_.ranks; ++r) note_stuck(r);
    if (verdict_.finishes) must_be_through();
    return verdict_;
  }

 private:
  const Step& step(int number) const { return program_.step(number); }
  Unit& unit(const Instance& instance) { return units_[static_cast<std::size_t>(instance.unit)]; }

  void enter_phase(Rank& rank, int phase) {
    rank.phase = phase;
    const auto threads =
        phase < static_cast<int>(program_.threads.size()) ? program_.threads[static_cast<std::size_t>(phase)] : 0;
    rank.position.assign(static_cast<std::size_t>(threads), 0);
    rank.entered.assign(static_cast<std::size_t>(threads), false);
  }

  bool advance(int r) {
    Rank& rank = ranks_[static_cast<std::size_t>(r)];
    if (rank.phase >= static_cast<int>(program_.threads.size())) return false;
    bool moved = false, all_through = true;
    const auto& streams = program_.streams[static_cast<std::size_t>(r)][static_cast<std::size_t>(rank.phase)];
    for (std::size_t t = 0; t < streams.size(); ++t) {
      while (rank.position[t] < streams[t].size() && act(r, rank, streams[t][rank.position[t]], t)) {
        ++rank.position[t];
        rank.entered[t] = false;
        moved = true;
      }
      all_through = all_through && rank.position[t] == streams[t].size();
    }
    if (!all_through) return moved;
    enter_phase(rank, rank.phase + 1);
    return true;
  }

  /// True when the thread may continue.
  bool act(int r, Rank& rank, const Action& action, std::size_t thread) {
    if (action.act == Act::delay || action.act == Act::test || action.act == Act::fork) return true;
    const Step& s = step(action.step);
    if (action.act == Act::finish) return complete_on(r, action.step);
    if (s.kind == Kind::drop) return true;
    if (s.kind == Kind::touch) {
      must_be_free(r, rank, action.step);
      return true;
    }
    if (!rank.entered[thread]) {
      rank.entered[thread] = true;
      issue(r, rank, action.step);
      start_what_can(rank);
    }
    return action.async || complete_on(r, action.step);
  }

  void issue(int r, Rank& rank, int number) {
    const Step& s = step(number);
    const int first = first_unit_[static_cast<std::size_t>(number)];
    if (s.packets.empty()) {
      if (rounds(s)) must_be_free(r, rank, number);
      rank.issued.push_back({first,
                             is_comm_maker(s.kind) ? std::vector<Interval>{} : accesses(program_, s, r),
                             {s.comm, -1, -1, -1, ""}});
      return;
    }
    const int me = rank_in(program_.comm(s.comm), r);
    const bool gathers = collects(program_, s, r);
    if (gathers) must_be_free(r, rank, number);
    for (std::size_t i = 0; i < s.packets.size(); ++i) {
      const Packet& p = s.packets[i];
      if (p.from != me && p.to != me) continue;
      // A receive from any source first writes outside the program's memory.
      auto touched = gathers ? std::vector<Interval>{} : accesses(program_, s, r, static_cast<int>(i));
      const bool sends = p.from == me;
      rank.issued.push_back({first + static_cast<int>(i),
                             std::move(touched),
                             {s.comm, sends ? p.to : p.from, sends ? 1 : 0, p.tag, s.backend}});
    }
  }

  /// No pending operation may use memory that the rank itself touches.
  void must_be_free(int r, Rank& rank, int number) {
    const auto own = accesses(program_, step(number), r);
    for (Instance& earlier : rank.issued) {
      if (!unit(earlier).complete() && conflict(earlier.accesses, own)) {
        verdict_.mistake =
            "rank " + std::to_string(r) + " touches memory of a pending operation in step " + std::to_string(number);
        verdict_.finishes = false;
      }
    }
  }

  /// A dropped Work must be covered by an operation that was waited for.
  void must_be_through() {
    for (Rank& rank : ranks_) {
      for (const Instance& instance : rank.issued) {
        if (unit(instance).complete()) continue;
        verdict_.mistake = "an operation is still pending when the program ends";
        verdict_.finishes = false;
      }
    }
  }

  bool complete_on(int r, int number) {
    const Step& s = step(number);
    const auto first = static_cast<std::size_t>(first_unit_[static_cast<std::size_t>(number)]);
    if (s.packets.empty()) return units_[first].complete();
    const int me = rank_in(program_.comm(s.comm), r);
    for (std::size_t i = 0; i < s.packets.size(); ++i) {
      const bool mine = s.packets[i].from == me || s.packets[i].to == me;
      if (mine && !units_[first + i].complete()) return false;
    }
    return true;
  }

  bool start_what_can(Rank& rank) {
    bool moved = false;
    for (std::size_t i = 0; i < rank.issued.size(); ++i) {
      Instance& instance = rank.issued[i];
      if (instance.started || !may_start(rank, i)) continue;
      instance.started = moved = true;
      ++unit(instance).started;
    }
    return moved;
  }

  bool may_start(Rank& rank, std::size_t i) {
    const Instance& instance = rank.issued[i];
    for (std::size_t j = 0; j < i; ++j) {
      Instance& earlier = rank.issued[j];
      if (earlier.queue == instance.queue && !earlier.started) return false;
      if (!unit(earlier).complete() && conflict(earlier.accesses, instance.accesses)) return false;
    }
    return true;
  }

  void note_stuck(int r) {
    const Rank& rank = ranks_[static_cast<std::size_t>(r)];
    if (rank.phase >= static_cast<int>(program_.threads.size())) return;
    verdict_.finishes = false;
    for (std::size_t t = 0; t < rank.position.size(); ++t) {
      const auto& stream = program_.streams[static_cast<std::size_t>(r)][static_cast<std::size_t>(rank.phase)][t];
      if (rank.position[t] < stream.size())
        verdict_.stuck.push_back({r, rank.phase, static_cast<int>(t), rank.position[t]});
    }
  }

  const Program& program_;
  std::vector<Unit> units_;
  std::vector<int> first_unit_;  ///< by step
  std::vector<Rank> ranks_;
  Verdict verdict_;
};

}  // namespace

Verdict run_ideal(const Program& program) { return Machine(program).run(); }

}  // namespace medley::soak
