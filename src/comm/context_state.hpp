// The state behind a Context: its place in the job, its backends, its comms.
#pragma once

#include <condition_variable>
#include <map>
#include <medley/backend.hpp>
#include <medley/context.hpp>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "algorithms/capabilities.hpp"
#include "comm/comm_terms.hpp"
#include "control/control.hpp"
#include "engine/comm_state.hpp"
#include "engine/consistency_checker.hpp"
#include "engine/control_events.hpp"
#include "engine/engine.hpp"

namespace medley::core {

/// The backends to load for a list that may name pairs such as shm+mpi: the plain ones, then the pairs' halves.
std::vector<std::string> with_halves(const std::vector<std::string>& wanted);

struct BackendChoice;
struct FoundTable;
struct OpenedBackends;
struct RankOffer;

class ContextState : public std::enable_shared_from_this<ContextState> {
 public:
  explicit ContextState(const ContextOptions& options);
  ~ContextState();

  /// Makes a comm of these world ranks; called by all of them together, with the same name.
  std::shared_ptr<CommState> make_comm(const std::string& name, const std::vector<int>& world_ranks,
                                       const Rules& own_rules, std::chrono::nanoseconds comm_deadline,
                                       const CommTraits& traits);
  /// All-gather of strings, by place among `members` (world ranks); all members call it, under one name. Progresses the
  /// engine meanwhile. An Error of kind timeout names the missing ranks; a failure of `parent`, if one is given, ends
  /// it.
  std::vector<std::string> gather(const std::string& name, const std::string& purpose, const std::vector<int>& members,
                                  const std::string& mine, Deadline until, CommState* parent);
  /// Throws when a rule names a backend that the context does not have.
  void check_rules(const Rules& checked) const;

  /// Of the ranks on this host, how many there are, or how many before this one.
  int local_size() const;
  int local_rank() const;

  int rank = 0;
  int size = 1;
  int device = 0;
  std::chrono::nanoseconds deadline{};
  std::shared_ptr<Store> store;
  std::shared_ptr<Engine> engine = std::make_shared<Engine>();
  std::vector<BackendInfo> infos;
  std::vector<std::string> hosts;  ///< per rank: equal ones share a host
  Rules rules;
  std::optional<route::Table> table;
  TableInfo table_info;
  bool announces_losses = false;
  bool world_is_exact = false;               ///< ContextOptions::exact
  bool checking = false;                     ///< check mode: MEDLEY_CHECK=1 on any rank, or a debug build
  std::optional<OnlineRoutes::Mode> online;  ///< routes are measured in the running job
  std::shared_ptr<CommState> world;

 private:
  struct Ready {
    std::unique_ptr<Backend> backend;
    Capabilities capabilities;  ///< common to all ranks
    std::uint8_t note;          ///< its number in records
  };
  void make_backends(const ContextOptions& options);
  void make_lanes(CommState& comm);
  /// One backend on one comm; `staged`: for CUDA memory that the backend does not handle natively.
  std::unique_ptr<LaneState> connect(CommState& comm, const Ready& ready, bool staged);
  CommParams params_of(const std::string& name, const std::vector<int>& world_ranks, const std::string& backend);
  /// For messages inside this host, on a comm of several hosts; null where none applies.
  std::unique_ptr<LaneState> connect_intra_host(CommState& comm);
  void make_routes(CommState& comm, const Rules& own_rules, const CommTraits& traits);
  void register_comm(const std::shared_ptr<CommState>& comm);
  BackendParams params_from(const std::vector<RankOffer>& offers, Deadline until) const;
  int default_device() const;
  OpenedBackends open_backends(const BackendChoice& choice, const FoundTable& found,
                               const std::vector<RankOffer>& offers, const BackendParams& params,
                               std::map<std::string, std::unique_ptr<Backend>>& made);
  std::string create(const std::string& name, const BackendParams& params, std::unique_ptr<Backend>& made);
  void agree_on_opened(const std::vector<OpenedBackends>& opened, bool named,
                       std::map<std::string, std::unique_ptr<Backend>>& made);
  std::vector<std::string> names_made_of_two(const std::vector<std::string>& wanted) const;
  std::unique_ptr<Backend> make_of_two(const std::string& name) const;
  void make_all_of_two(const std::vector<std::string>& wanted);
  bool has_hosts_of_several_ranks() const;
  std::vector<std::string> with_every_pair(std::vector<std::string> wanted) const;
  std::vector<std::string> default_pair() const;
  void note_job();
  route::Shape shape_of(const std::vector<int>& world_ranks) const;
  void warn_fallback_shape(const CommState& comm, const route::Shape& shape);
  std::vector<Ready> backends_;  ///< in order of preference
  std::string why_no_cuda_;      ///< why CUDA memory is not staged, on the first rank where it is not; empty if it is
  std::mutex comms_mutex_;
  std::map<std::string, Error> failed_early_;  ///< comms that other ranks aborted before they were made here
  std::vector<std::weak_ptr<CommState>> comms_;
  bool warned_fallback_shape_ = false;
  ForkGuard fork_guard_;

  // What the control thread receives and sends (context_control.cpp).
  void listen_for_control();
  void start_control(const std::vector<OpenedBackends>& opened);
  std::shared_ptr<CommState> find_comm(const std::string& name);
  std::shared_ptr<CommState> find_comm_locked(const std::string& name) const;
  std::shared_ptr<CommState> find_comm_for(const std::string& name, const Error& error);
  /// Throws when a member was lost, or left a while ago; `left_since` is the caller's memory of that.
  void check_members(const std::vector<int>& members, const std::string& purpose, Deadline& left_since) const;
  void on_message(int from, const control::Message& message);
  void on_gone(int world_rank, const std::string& how);
  void on_tick();
  void act_on_events();
  void note_gone(const RankGone& event);
  void look_for_gone();
  void announce_failure(const CommState& comm, const Error& why);
  void ask_checker(const CommState& comm, const Operation& operation);
  void check_call(const nlohmann::json& call);
  void compare_message_sizes();
  void on_size_report(int from, const nlohmann::json& report);
  void fail_for_sizes(const CommStatus& comm, const MessageSizes::Difference& difference);
  ConsistencyChecker checker_;  ///< owned by the control thread, as are the next four
  bool any_gone_ = false;
  bool announced_loss_ = false;
  std::uint64_t polls_seen_ = 0;  ///< the engine's poll count when last seen
  Deadline polled_{};             ///< when that last changed
  ControlEvents events_;          ///< from the control thread to the engine's threads
  Diagnosis diagnose_stall(const CommState& comm, const Operation& waiting);
  struct Gone {
    std::string how;  ///< empty: it left in order
    Deadline since;
  };
  std::mutex gone_mutex_;
  std::map<int, Gone> gone_;  ///< lost ranks, by world rank
  std::mutex answers_mutex_;
  std::condition_variable answered_;
  std::map<std::string, std::map<int, nlohmann::json>> answers_;  ///< to open queries, by query and world rank
  std::uint64_t queries_ = 0;
  std::unique_ptr<control::Control> control_;  ///< last: its thread uses everything above
};

}  // namespace medley::core
