// A Context is one rank's membership in a job: who it is, which backends it may use, and the world comm.
// Several contexts can live in one process, one per thread or device; they share nothing.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <medley/comm.hpp>
#include <medley/export.hpp>
#include <medley/route_decision.hpp>
#include <medley/store.hpp>

namespace medley {

namespace core {
class ContextState;
}

/// Whether a progress thread of the context drives pending operations while the program is outside Medley. `automatic`
/// starts it once something needs it, such as CUDA buffers over a host backend: it takes processor time from the ranks.
enum class UseThread : std::uint8_t { automatic, never, always };

/// Options of a context; empty fields come from the launcher's environment.
struct ContextOptions {
  /// In order of preference. Empty: MEDLEY_BACKENDS, or all that work on all ranks, in the built-in order
  /// (docs/routing.md). {"auto"}: those that the table and the rules can choose
  std::vector<std::string> backends{};
  /// Which backend carries which operation, see medley/rules.hpp; empty: MEDLEY_RULES
  std::string rules{};
  /// File of a measured route table; empty: MEDLEY_TABLE or the user's cached one
  std::string table{};
  int rank = -1;                   ///< with size and store: this rank, set explicitly
  int size = 0;                    ///< the number of ranks, where `rank` is set
  std::shared_ptr<Store> store{};  ///< the rendezvous of this context's ranks; one rank needs none
  int device = -1;  ///< the CUDA device of this rank; -1: the ranks of a host take its devices round-robin
  /// Also combine two backends, such as shm+mpi, where several hosts have several ranks
  bool hierarchical = false;
  /// For finding the ranks and connecting, and the default for operations
  std::chrono::nanoseconds deadline = std::chrono::minutes(10);
  /// Whether messages of the world have exact sizes, see CommOptions::exact
  bool exact = false;
  /// Whether routes are measured again in the running job and changed where another is clearly faster
  /// (docs/online-routes.md). If one rank asks for it, by this or by MEDLEY_ONLINE=1, all do it.
  bool online = false;
  /// Whether operations progress while the program is outside Medley
  UseThread progress_thread = UseThread::automatic;
  /// Whether to print a lost rank on stderr at once, before the operations that need it fail: for launchers that kill
  /// the other ranks so soon that nobody would see their errors (torchrun).
  bool announce_losses = false;
};

/// A backend as a context sees it.
struct BackendInfo {
  std::string name;
  std::string version;  ///< of the underlying library
  bool available = false;
  std::string reason;  ///< why not
};

/// The route table that a context uses where no rule matches.
struct TableInfo {
  std::string path{};  ///< empty: no table, the built-in order
  std::string hash{};
  std::string note{};  ///< why there is none, or what may be unexpected about it; empty otherwise
};

/// One rank's membership in a job. All ranks construct it together: it finds the others, agrees with them on backends,
/// rules and the route table, and connects the world. Throws Error if that fails or exceeds the deadline.
class MEDLEY_API Context {
 public:
  Context() : Context(ContextOptions{}) {}
  explicit Context(std::vector<std::string> backends) : Context(ContextOptions{.backends = std::move(backends)}) {}
  explicit Context(std::initializer_list<std::string_view> backends)
      : Context(std::vector<std::string>(backends.begin(), backends.end())) {}
  explicit Context(ContextOptions options);
  /// Pending operations fail with Error(aborted). Small sends that Medley has buffered are delivered, within a few
  /// seconds. It does not wait until other ranks leave. Comms that outlive the context refuse every call.
  ~Context();
  Context(Context&&) noexcept;
  Context& operator=(Context&&) noexcept;

  Comm world() const;  ///< the comm of all ranks of the job
  /// A comm of the listed world ranks, in that order. Only these ranks call it, whereas all ranks of a comm call
  /// Comm::split() and subset(). They pass the same name, which the job has not used before.
  Comm make_comm(const std::string& name, std::span<const int> world_ranks, const CommOptions& options = {}) const;
  int rank() const noexcept;        ///< of this process in the world, from 0
  int size() const noexcept;        ///< number of ranks of the world
  int local_rank() const noexcept;  ///< of this process among the world's ranks on its host, from 0
  int local_size() const noexcept;  ///< number of ranks of the world on this host
  int device() const noexcept;      ///< the CUDA device whose buffers operations take
  /// The backends that ContextOptions::backends or MEDLEY_BACKENDS lists; without a list, all that any rank has.
  /// BackendInfo::reason says why one cannot be used.
  const std::vector<BackendInfo>& backends() const noexcept;
  const TableInfo& table() const noexcept;  ///< the route table in use
  /// With ContextOptions::online: the latest 256 decisions about routes, the oldest first.
  std::vector<RouteDecision> route_decisions() const;
  /// Drives all pending operations, for program loops that wait for something else. Blocking calls do the same.
  void progress();

 private:
  std::shared_ptr<core::ContextState> state_;
};

}  // namespace medley
