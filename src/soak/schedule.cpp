#include "soak/schedule.hpp"

#include <algorithm>
#include <set>
#include <stdexcept>

#include "soak/ideal_machine.hpp"

namespace medley::soak {
namespace {

/// How one rank would like to run its steps, before this becomes a stream.
struct Wishes {
  std::vector<std::vector<std::vector<int>>> order{};  ///< steps, by phase and thread
  struct IssueStyle {
    bool blocking = false;
    bool dropped = false;
    int delay = 0;     ///< before the step, in microseconds
    int max_wait = 0;  ///< for a blocking step, in microseconds
    bool forks = false;
    int looks_at = -1;  ///< a step it tests or waits for afterwards
    bool only_tests = false;
    Wait wait{}, last_wait{};
  };
  std::vector<IssueStyle> style{};  ///< by step
};

class Scheduler {
 public:
  Scheduler(Program& program, Random& random) : program_(program), random_(random) {
    percent_blocking_ = random.one_of({0, 20, 50, 80});
    percent_delayed_ = random.one_of({0, 0, 5, 20});
    per_mille_late_ = random.one_of({0, 0, 0, 0, 5, 20});
    per_mille_forks_ = random.one_of({0, 0, 0, 0, 20});
    swaps_ = random.one_of({0, 1, 3});
    if (program.one_order) swaps_ = 0;
    program.threads.push_back(1);  // a last phase that waits for everything still pending
    for (int r = 0; r < program.ranks; ++r) wishes_.push_back(wish(r));
  }

  void run() {
    lower_all();
    for (int tries = 0;; ++tries) {
      const Verdict verdict = run_ideal(program_);
      if (verdict.finishes) return;
      if (!verdict.mistake.empty() || tries > 10'000)
        throw std::logic_error("a program cannot be scheduled: " + verdict.mistake);
      if (!relax(verdict)) restore_orders();
    }
  }

 private:
  Step& step(int number) { return program_.step(number); }

  Wishes wish(int rank) {
    Wishes wishes;
    wishes.order = plain_order(rank);
    wishes.style.resize(program_.steps.size());
    std::vector<int> before;
    for (auto& phase : wishes.order) {
      for (auto& thread : phase) {
        for (std::size_t i = 0; i < swaps_ * thread.size(); ++i) swap_somewhere(thread, rank);
        for (int number : thread) {
          before.push_back(number);
          wishes.style[static_cast<std::size_t>(number)] = style_of(before);
        }
      }
    }
    return wishes;
  }

  Wishes::IssueStyle style_of(const std::vector<int>& before) {
    Wishes::IssueStyle style;
    style.blocking = random_.chance(percent_blocking_);
    style.dropped = random_.chance(10);
    if (random_.chance(percent_delayed_)) style.delay = random_.between(1, 500);
    if (random_.chance(per_mille_late_) && random_.chance(10)) style.delay = random_.between(20'000, 120'000);
    if (random_.chance(40)) style.max_wait = random_.between(1, 3'000);
    style.forks = random_.chance(per_mille_forks_) && random_.chance(10);
    if (random_.chance(30)) style.looks_at = random_.one_of(before);
    style.only_tests = random_.chance(40);
    style.wait = random_.one_of({Wait::wait, Wait::wait, Wait::deadline, Wait::endless, Wait::test});
    style.last_wait = random_.one_of({Wait::wait, Wait::wait, Wait::deadline, Wait::endless, Wait::test});
    return style;
  }

  std::vector<std::vector<std::vector<int>>> plain_order(int rank) {
    std::vector<std::vector<std::vector<int>>> order;
    for (int threads : program_.threads) order.emplace_back(static_cast<std::size_t>(threads));
    for (std::size_t i = 0; i < program_.steps.size(); ++i) {
      const Step& s = program_.steps[i];
      if (takes_part(program_, s, rank)) {
        order[static_cast<std::size_t>(s.phase)][static_cast<std::size_t>(s.thread)].push_back(static_cast<int>(i));
      }
    }
    return order;
  }

  void swap_somewhere(std::vector<int>& list, int rank) {
    if (list.size() < 2) return;
    const auto i = static_cast<std::size_t>(random_.below(static_cast<std::int64_t>(list.size()) - 1));
    if (independent(step(list[i]), step(list[i + 1]), rank)) std::swap(list[i], list[i + 1]);
  }

  /// Whether a rank may issue two steps in either order without changing the program's meaning.
  bool independent(const Step& a, const Step& b, int rank) {
    for (const auto& [x, y] : {std::pair(&a, &b), std::pair(&b, &a)}) {
      if (is_comm_maker(x->kind) && std::find(x->made.begin(), x->made.end(), y->comm) != x->made.end()) return false;
      if (x->kind == Kind::drop && x->comm == y->comm) return false;
    }
    const auto ordered = [](const Step& s) { return s.kind == Kind::collective || is_comm_maker(s.kind); };
    const auto messages = [](const Step& s) { return !s.packets.empty(); };
    if (a.comm == b.comm &&
        ((ordered(a) && ordered(b)) || (messages(a) && messages(b) && a.packets[0].tag == b.packets[0].tag)))
      return false;
    return !conflict(touched(a, rank), touched(b, rank));
  }

  std::vector<Interval> touched(const Step& s, int rank) {
    const bool none = is_comm_maker(s.kind) || s.kind == Kind::drop;
    return none ? std::vector<Interval>{} : accesses(program_, s, rank);
  }

  void lower_all() {
    program_.streams.clear();
    for (int r = 0; r < program_.ranks; ++r) program_.streams.push_back(lower(r));
  }

  /// Whether the rank's part in a step is always complete when the call returns.
  bool immediate(const Step& s, int rank) {
    return s.kind == Kind::touch || s.kind == Kind::drop || is_comm_maker(s.kind) || collects(program_, s, rank);
  }

  std::vector<std::vector<Stream>> lower(int rank) {
    const Wishes& wishes = wishes_[static_cast<std::size_t>(rank)];
    std::vector<std::vector<Stream>> streams;
    std::vector<int> pending;  // at the start of a phase
    for (const auto& phase : wishes.order) {
      streams.emplace_back();
      std::vector<int> still = pending;
      std::set<int> finished;
      for (const auto& thread : phase) {
        std::vector<int> seen = pending;  // pending as far as this thread knows
        streams.back().push_back(lower_thread(rank, thread, seen, finished));
        for (int number : seen) {
          if (std::find(still.begin(), still.end(), number) == still.end()) still.push_back(number);
        }
      }
      std::erase_if(still, [&](int number) { return finished.contains(number); });
      pending = still;
    }
    finish_all(rank, pending, streams.back()[0]);
    return streams;
  }

  Stream lower_thread(int rank, const std::vector<int>& list, std::vector<int>& pending, std::set<int>& finished) {
    const Wishes& wishes = wishes_[static_cast<std::size_t>(rank)];
    Stream stream;
    const auto finish = [&](int number, Wait wait) {
      stream.push_back({.act = Act::finish, .step = number, .wait = wait});
      std::erase(pending, number);
      finished.insert(number);
    };
    for (int number : list) {
      const Step& s = step(number);
      const Wishes::IssueStyle& style = wishes.style[static_cast<std::size_t>(number)];
      if (style.delay > 0) stream.push_back({.act = Act::delay, .step = number, .microseconds = style.delay});
      if (style.forks) stream.push_back({.act = Act::fork, .step = number});
      const bool now = immediate(s, rank);
      if (s.kind == Kind::touch || collects(program_, s, rank)) {  // no pending operation may use the memory then
        const std::vector<int> earlier = pending;
        for (int other : earlier) {
          if (conflict(touched(step(other), rank), touched(s, rank))) finish(other, style.wait);
        }
      }
      const bool async = !now && !style.blocking;
      const bool patient = !now && !async && s.kind == Kind::collective;
      stream.push_back({.act = Act::issue,
                        .step = number,
                        .async = async,
                        .dropped = async && droppable(rank, number),
                        .max_wait = patient ? style.max_wait : 0});
      if (async) pending.push_back(number);
      const int other = style.looks_at;
      if (std::find(pending.begin(), pending.end(), other) == pending.end() || droppable(rank, other)) continue;
      if (style.only_tests) {
        stream.push_back({.act = Act::test, .step = other});
      } else {
        finish(other, style.wait);
      }
    }
    return stream;
  }

  /// Whether the rank may drop a step's Work: for each of the step's operations, a later one that touches the same
  /// memory and keeps its Work implies that it is complete.
  bool droppable(int rank, int number) {
    const Wishes& wishes = wishes_[static_cast<std::size_t>(rank)];
    if (!wishes.style[static_cast<std::size_t>(number)].dropped) return false;
    std::vector<std::vector<Interval>> uncovered = operations(program_, step(number), rank);
    bool later = false;
    for (const auto& phase : wishes.order) {
      for (const auto& thread : phase) {
        for (int other : thread) {
          const std::vector<Interval> memory = later ? touched(step(other), rank) : std::vector<Interval>{};
          // The rank itself must wait for it
          if (immediate(step(other), rank) && conflict(touched(step(number), rank), memory)) return false;
          if (!wishes.style[static_cast<std::size_t>(other)].dropped && step(other).kind == Kind::collective)
            std::erase_if(uncovered, [&](const auto& one) { return conflict(one, memory); });
          later = later || other == number;
        }
      }
    }
    return uncovered.empty();
  }

  void finish_all(int rank, std::vector<int> pending, Stream& stream) {
    Random own(program_.seed + 7919 * static_cast<std::uint64_t>(rank + 1));
    own.shuffle(pending);
    for (int number : pending) {
      if (droppable(rank, number)) continue;
      stream.push_back(
          {.act = Act::finish,
           .step = number,
           .wait = wishes_[static_cast<std::size_t>(rank)].style[static_cast<std::size_t>(number)].last_wait});
    }
  }

  /// Withdraws one wish of a stuck rank; false when no stuck rank has one left.
  bool relax(const Verdict& verdict) {
    bool some = false;
    for (const Stuck& stuck : verdict.stuck) {
      const Stream& stream =
          program_.streams[static_cast<std::size_t>(stuck.rank)][static_cast<std::size_t>(stuck.phase)]
                          [static_cast<std::size_t>(stuck.thread)];
      const Action& action = stream[stuck.position];
      auto& manners = wishes_[static_cast<std::size_t>(stuck.rank)].style;
      if (action.act == Act::issue && !immediate(step(action.step), stuck.rank)) {
        manners[static_cast<std::size_t>(action.step)].blocking = false;
        some = true;
      }
      if (action.act != Act::finish) continue;
      for (auto& style : manners) {  // waits that some step wished for; those that a touch needs stay
        if (style.looks_at != action.step || style.only_tests) continue;
        style.looks_at = -1;
        some = true;
      }
    }
    if (some) lower_all();
    return some;
  }

  void restore_orders() {
    for (int r = 0; r < program_.ranks; ++r) {
      Wishes& wishes = wishes_[static_cast<std::size_t>(r)];
      wishes.order = plain_order(r);
      if (restored_) {  // and everything that can run in the background does
        for (auto& style : wishes.style) style.blocking = false, style.looks_at = -1;
      }
    }
    if (restored_ > 1) throw std::logic_error("a program is stuck in every order");
    ++restored_;
    lower_all();
  }

  Program& program_;
  Random& random_;
  int percent_blocking_, percent_delayed_, per_mille_late_, per_mille_forks_;
  std::size_t swaps_;
  int restored_ = 0;
  std::vector<Wishes> wishes_;
};

}  // namespace

void schedule(Program& program, Random& random) { Scheduler(program, random).run(); }

}  // namespace medley::soak
