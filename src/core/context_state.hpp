// What a Context stands for: its place in the job, its backends, its comms.
#pragma once

#include <map>
#include <medley/backend.hpp>
#include <medley/context.hpp>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/capabilities.hpp"
#include "core/comm_state.hpp"
#include "core/engine.hpp"

namespace medley::core {

class ContextState : public std::enable_shared_from_this<ContextState> {
 public:
  explicit ContextState(const ContextOptions& options);
  ~ContextState();

  /// Makes a comm of these world ranks; called by all of them together, with the same name.
  std::shared_ptr<CommState> make_comm(const std::string& name, const std::vector<int>& world_ranks, const Rules& own_rules,
                                       std::chrono::nanoseconds comm_deadline);
  /// Throws when a rule names a backend that the context does not have.
  void check_rules(const Rules& checked) const;

  int rank = 0;
  int size = 1;
  int device = 0;
  std::chrono::nanoseconds deadline{};
  std::shared_ptr<Store> store;
  std::shared_ptr<Engine> engine = std::make_shared<Engine>();
  std::vector<BackendInfo> infos;
  Rules rules;
  std::shared_ptr<CommState> world;

 private:
  struct Ready {
    std::unique_ptr<Backend> backend;
    Capabilities capabilities;   ///< common to all ranks
    std::uint8_t note;           ///< its number in records
  };
  void make_backends(const ContextOptions& options);
  /// One backend on one comm; `staged`: for CUDA memory that the backend does not move itself.
  std::unique_ptr<LaneState> connect(const CommState& comm, const Ready& ready, bool staged);
  std::vector<nlohmann::json> ask_all(const std::string& about, const nlohmann::json& mine, Deadline until);
  static std::vector<std::string> names_of_all(const std::vector<nlohmann::json>& answers);
  std::string create(const std::string& name, const Surroundings& surroundings, std::unique_ptr<Backend>& made);
  void agree_on_made(const std::vector<nlohmann::json>& answers, bool named,
                     std::map<std::string, std::unique_ptr<Backend>>& made);
  std::vector<Ready> backends_;   ///< in order of preference
  std::string why_no_cuda_;       ///< why CUDA memory is not staged, on the first rank where it is not; empty if it is
  std::mutex comms_mutex_;
  std::vector<std::weak_ptr<CommState>> comms_;
  ForkGuard fork_guard_;
};

}  // namespace medley::core
