// A running job as the launcher sees it: its ranks, their output, and what happens when one fails or a
// signal arrives.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bootstrap/launch.hpp"
#include "bootstrap/launch_output.hpp"
#include "bootstrap/launch_spawn.hpp"
#include "bootstrap/launch_supervisor.hpp"
#include "bootstrap/store.hpp"
#include "bootstrap/store_server.hpp"

namespace medley {

class Job {
 public:
  explicit Job(const LaunchOptions& options);
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  int run();

 private:
  struct Rank {
    pid_t group = 0;       ///< 0: not started yet
    bool running = true;   ///< or about to start
    Descriptor line = {};  ///< under mpirun: where it reports its exit status
  };
  struct Stream {
    Descriptor from;
    LineCarrier lines;
  };
  struct Pipes {
    Descriptor out, err;  ///< what a rank writes to
  };

  // Starting (launch_start.cpp)
  void start();
  void start_rank(int rank);
  void start_mpirun();
  Pipes make_streams(int rank);
  std::map<std::string, std::string> rank_environment() const;
  void admit_rank();
  void hear_rank(int rank);

  // Watching
  void wait_for_events(std::optional<Deadline> until);
  void carry(Stream& stream);
  void take_signal();
  void reap();
  bool anyone_running() const;

  // Deciding
  void ended(int rank, int status);
  void act_on_time();
  void signal_ranks(int signal);
  std::string running_ranks() const;
  bool everyone_came() const;
  std::string missing_ranks() const;
  void clean_up();

  LaunchOptions options_;
  std::string token_;
  StoreServer store_;
  Supervisor supervisor_;
  Descriptor signals_;
  std::vector<Rank> ranks_;
  std::vector<std::string> cores_;  ///< the mask of each rank; empty: they are not bound
  std::vector<std::unique_ptr<Stream>> streams_;
  pid_t mpirun_ = 0;
  std::string door_name_;
  Descriptor door_;  ///< the socket where ranks under mpirun report

  int exit_status_ = 0;
  int kills_ = 0;                        ///< times the ranks were sent SIGKILL
  int interrupts_ = 0;                   ///< SIGINT and SIGTERM so far
  std::optional<Deadline> terminate_;    ///< when the remaining ranks get SIGTERM
  std::optional<Deadline> kill_;         ///< and SIGKILL
  std::optional<Deadline> all_here_by_;  ///< under mpirun: when every rank must have reported
};

}  // namespace medley
