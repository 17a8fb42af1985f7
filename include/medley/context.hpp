// A Context is one rank's membership in a job: who it is, which backends it may use, and the world comm.
// Several contexts can live in one process, one per thread or device; they share nothing.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <medley/comm.hpp>
#include <medley/export.hpp>
#include <medley/store.hpp>

namespace medley {

namespace core {
class ContextState;
}

/// Whether a thread of the context moves pending operations while the program is elsewhere. `automatic`: as soon as
/// something needs it, such as CUDA buffers over a host backend, and not before: it takes a core's time from the ranks.
enum class UseThread : std::uint8_t { automatic, never, always };

/// Everything a context may be told; what is left empty comes from the launcher's environment.
struct ContextOptions {
  std::vector<std::string> backends{};        ///< in order of preference; empty: MEDLEY_BACKENDS or all that work
  std::string rules{};                        ///< which backend carries what, see medley/rules.hpp; empty: MEDLEY_RULES
  std::string table{};                        ///< file of a measured route table; empty: MEDLEY_TABLE or the user's cached one
  int rank = -1;                              ///< with size and store: an explicit place in the job
  int size = 0;
  std::shared_ptr<Store> store{};             ///< where the ranks of this context meet
  int device = 0;                             ///< the CUDA device of this rank
  bool hierarchical = false;                  ///< also backends of two, such as shm+mpi, where several hosts have several ranks
  std::chrono::nanoseconds deadline = std::chrono::minutes(10);   ///< default of every wait
  UseThread progress_thread = UseThread::automatic;
  /// Whether to say on stderr at once that a rank was lost, before the operations that need it fail: for launchers that end
  /// the others so soon that nobody would see their errors (torchrun).
  bool announce_losses = false;
};

/// A backend as a context sees it.
struct BackendInfo {
  std::string name;
  std::string version;     ///< of the library behind it
  bool available = false;
  std::string reason;      ///< why not
};

/// The route table a context takes where no rule fits.
struct TableInfo {
  std::string path{};      ///< empty: none, the built-in order
  std::string hash{};
  std::string note{};      ///< why there is none, or what about it may surprise; empty: nothing to say
};

class MEDLEY_API Context {
 public:
  Context() : Context(ContextOptions{}) {}
  explicit Context(std::vector<std::string> backends) : Context(ContextOptions{.backends = std::move(backends)}) {}
  explicit Context(ContextOptions options);
  ~Context();   ///< waits for nobody; comms that outlive it refuse every call
  Context(Context&&) noexcept;
  Context& operator=(Context&&) noexcept;

  Comm world() const;
  /// A comm of the listed ranks of the world, in that order, made by them alone; Comm::split and subset need everyone.
  /// The name is the same on all of them and new in the job.
  Comm make_comm(const std::string& name, std::span<const int> world_ranks, const CommOptions& options = {}) const;
  int rank() const noexcept;
  int size() const noexcept;
  const std::vector<BackendInfo>& backends() const noexcept;
  const TableInfo& table() const noexcept;
  /// Moves everything that is pending; for loops of a program that wait for something else. A blocking call does so too.
  void progress();

 private:
  std::shared_ptr<core::ContextState> state_;
};

}  // namespace medley
