// An all-gather of small strings among the ranks of a comm, over the control links: the strings go up a binomial
// tree and the full set comes down it, in 2 log2(n) steps and 2(n-1) messages. Used to create comms.
//
// Gathering is the caller's handle: a flag to poll or wait for. Gatherings is the protocol, without sockets and
// threads; the control thread owns it. It never waits: messages that arrive before this rank has called are kept until
// it does.
#pragma once

#include <medley/export.hpp>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "control/link.hpp"

namespace medley::control {

class MEDLEY_API Gathering {
 public:
  /// `members`: world ranks, equal on all of them; `own`: this rank's index among them.
  Gathering(std::string name, std::vector<int> members, int own, std::string mine)
      : name_(std::move(name)), members_(std::move(members)), own_(own), mine_(std::move(mine)) {}

  /// Whether all strings have arrived; waits at most until `until`.
  bool wait_until(std::chrono::steady_clock::time_point until);
  bool done() { return wait_until({}); }
  /// All strings, by index. Call it once done; throws an Error of kind mismatch if the ranks called different
  /// exchanges.
  const std::vector<std::string>& all() const;

  /// After Control::ask_who_called(): the members that have not confirmed within `limit` that they called it, by index.
  std::vector<int> not_called(std::chrono::milliseconds limit);

  const std::string& name() const { return name_; }
  const std::vector<int>& members() const { return members_; }

 private:
  friend class Gatherings;
  void finish(std::vector<std::string> all);
  void fail(std::string why);
  void note_called(int world_rank, bool called);

  const std::string name_;
  const std::vector<int> members_;
  const int own_;
  const std::string mine_;
  std::mutex mutex_;  ///< guards what follows; held for no longer than a copy
  std::condition_variable changed_;
  bool done_ = false;
  std::vector<std::string> all_;
  std::string difference_;
  std::map<int, bool> called_;  ///< by world rank
};

class MEDLEY_API Gatherings {
 public:
  struct Outgoing {
    int to;  ///< a world rank
    Message message;
  };
  static bool about(const Message& message) { return message.kind.starts_with("gather/"); }
  /// Asks whether a member has called the gathering of this name; the answer goes to Gathering::not_called().
  static Message question(const std::string& name);

  void start(std::shared_ptr<Gathering> gathering, std::vector<Outgoing>& out);
  void receive(int from, const Message& message, std::vector<Outgoing>& out);
  /// The caller gave up: later messages for this name are dropped.
  void abandon(const std::string& name);
  std::size_t open() const { return open_.size(); }

 private:
  struct Part {
    std::shared_ptr<Gathering> caller;     ///< null until this rank has called
    std::map<int, std::string> collected;  ///< from this rank's subtree, by index
    std::optional<int> size;               ///< from the first message
    bool sent = false;                     ///< up the tree
  };
  void advance(Part& part, std::vector<Outgoing>& out);
  void end(std::string name);
  void take_up(int from, const std::vector<std::string>& words, std::vector<Outgoing>& out);
  void take_down(const std::vector<std::string>& words, std::vector<Outgoing>& out);

  std::map<std::string, Part> open_;
  std::set<std::string> abandoned_;
  std::deque<std::string> ended_;  ///< the latest ones, for ranks that ask later
};

}  // namespace medley::control
