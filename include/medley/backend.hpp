// What a communication library must offer to carry Medley's operations: the one header a backend includes.
// Nothing here may block: operations are started, then polled by the engine, which holds its lock around every call.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <medley/error.hpp>
#include <medley/export.hpp>
#include <medley/store.hpp>
#include <medley/types.hpp>

namespace medley {

/// The version of the classes below. It changes whenever one of them does; a plugin built against another version is refused.
inline constexpr std::string_view backend_abi = "medley-backend-10";

/// Sends and receives that Medley makes of itself, such as those of filled-in collectives, have tags from -internal_tags to -1, which no user can name.
/// They match like all others: by peer and tag, in order.
inline constexpr int internal_tags = 1 << 15;

class Transfer;

/// What an operation on CUDA memory comes after. Plain data like the call, which has room for a pointer only: every call of
/// a small operation writes all of a Call.
struct Dependencies {
  void* ready = nullptr;   ///< an event (cudaEvent_t) of the user's stream at issue; in streams only valid during start()
  /// Earlier operations on the same memory, launched in streams and perhaps still running: start() puts its own stream
  /// behind each of them with order(). Only given to lanes that run in streams, and only during start().
  std::span<Transfer* const> transfers{};
};

/// One operation as a backend sees it: already validated, plain data, valid until its transfer is released.
struct Call {
  Op op{};
  DType dtype{};
  ReduceOp reduce{};
  Memory memory{};
  bool deterministic = false;
  bool captured = false;         ///< the stream is being captured in a graph: only lanes that run in streams
  int root = 0;                  ///< the root, or the peer of a send or receive (any_source allowed)
  int tag = 0;                   ///< users' are not negative; those of Medley itself are (internal_tags)
  const void* in = nullptr;      ///< null where this rank gives nothing
  void* out = nullptr;           ///< null where this rank receives nothing
  std::int64_t in_count = 0;     ///< elements this rank gives, all parts together
  std::int64_t out_count = 0;    ///< elements this rank receives, all parts together
  /// v-collectives: one entry per rank of the comm, in elements; null elsewhere.
  const std::int64_t* in_counts = nullptr;
  const std::int64_t* in_offsets = nullptr;
  const std::int64_t* out_counts = nullptr;
  const std::int64_t* out_offsets = nullptr;
  std::string_view algorithm{};  ///< empty: the backend's own choice
  void* stream = nullptr;        ///< on CUDA memory: the user's stream (cudaStream_t); null is the legacy default stream
  const Dependencies* dependencies = nullptr;   ///< on CUDA memory: what it comes after
};

/// Moments of an operation on a device, on the host's clock; those that are not known are the clock's epoch.
struct DeviceTimes {
  std::chrono::steady_clock::time_point begun, ended;
  std::chrono::steady_clock::time_point awaited;   ///< when the caller's stream came to where it waits for it
};

/// What a look at a transfer found. Somebody who waits may sleep after `waiting`, never after `moved`.
enum class Poll : std::uint8_t { waiting, moved, complete };

/// A started operation.
class Transfer {
 public:
  /// Moves it on. Long work returns `moved` now and then, so that other operations move too. Throws when it cannot
  /// complete; it is then only released.
  virtual Poll poll() = 0;
  /// Ranks of the comm it is waiting for, for messages.
  virtual std::vector<int> awaited() const { return {}; }
  /// Of a completed receive: who sent it.
  virtual int source() const { return -1; }
  /// Of a completed receive: how many bytes came, or -1 where the library does not say. A filled-in collective tells by it
  /// that its ranks gave different counts.
  virtual std::int64_t received() const { return -1; }
  /// On CUDA memory: whether the library's work is in its stream, so that others may be put behind it. Becomes true in
  /// poll() at the latest. Operations on host memory are launched when they are started.
  virtual bool launched() { return true; }
  /// Of a launched operation on CUDA memory: makes a stream wait for it and returns at once; false where only polling
  /// can tell when it is complete.
  virtual bool order(void* /*stream*/) { return false; }
  /// Of a completed operation on CUDA memory, where BackendParams::device_times asks for it.
  virtual DeviceTimes device_times() const { return {}; }
  /// Gives it back to its lane.
  virtual void release() noexcept { delete this; }
  /// Gives back one that is not complete, once its lane was aborted or poll() threw. `memory` owns everything the operation
  /// uses besides the caller's buffers: counts and offsets, scratch, pinned blocks. A library that cannot take back what it
  /// has begun (MPI) holds on to `memory` until it is done with it; all others let it go here.
  virtual void abandon(std::shared_ptr<const void> memory) noexcept {
    release();
    memory.reset();
  }

 protected:
  virtual ~Transfer() = default;
};

/// One backend on one comm.
class Lane {
 public:
  virtual ~Lane() = default;
  /// Starts an operation; null when it is complete already (not for receives, whose sender must be told).
  /// Collectives come in the same order on all ranks of the comm.
  virtual Transfer* start(const Call& call) = 0;
  /// Work beside the transfers: control messages, unexpected arrivals. Called while anything is pending.
  virtual void progress() {}
  /// True while something that is complete for the caller still needs progress() to reach its peer.
  virtual bool undelivered() const { return false; }
  /// Whether a collective may start before the one before it on this lane is complete.
  virtual bool concurrent_collectives() const { return true; }
  /// Whether its operations on CUDA memory run in streams: they honour Call::dependencies and have order(), collectives of the lane
  /// run one after the other as they were launched, and launches of several such lanes keep the order of issue.
  virtual bool in_streams() const { return false; }
  /// Throws when a peer is known to be dead, has left though it is awaited, or has aborted. Called now and then while
  /// somebody waits.
  virtual void check() {}
  /// Makes every pending and later operation fail, here and on the peers, which get an error of the same kind that
  /// names the same ranks. Begins that and returns at once.
  virtual void abort(const Error& why) noexcept = 0;
  /// After abort(), called until it returns true: no user memory is written any more, and the peers know as far as they can be
  /// reached. The lane bounds the time this takes.
  virtual bool poll_abort() noexcept { return true; }
  /// Before the lane is destroyed, called until it returns true: what is complete for the callers has reached the peers, so that
  /// the destructor does not wait. The lane bounds the time this takes. No operation is pending, and none comes any more.
  virtual bool poll_close() noexcept { return true; }
};

/// A way to sleep until a peer has written something. A backend without one is polled at short intervals.
class EventCount {
 public:
  virtual ~EventCount() = default;
  /// How often a waiting thread may poll before it yields its core, and yield before it sleeps.
  virtual int spins() const = 0;
  virtual int yields() const = 0;
  /// Whether ranks outnumber the cores, so that yielding to one another is how they get on.
  virtual bool oversubscribed() const = 0;
  /// Announces the wish to sleep; the caller polls once more between this and sleep().
  virtual std::uint32_t prepare() = 0;
  virtual void sleep(std::uint32_t ticket, std::chrono::nanoseconds at_most) = 0;
  virtual void cancel() = 0;
  /// Wakes the other sleeping threads of this rank.
  virtual void wake_own() noexcept = 0;
};

/// The ranks of a comm, as a backend needs them to connect.
struct CommParams {
  std::string name;                     ///< of the comm, unique in the job
  int rank = 0;
  int size = 1;
  std::vector<int> world_ranks;         ///< of each member
  std::shared_ptr<Store> store;         ///< private to this comm and backend
  Deadline deadline;
  std::function<void()> progress;       ///< to be called in every loop that waits for a peer
  /// What all_gather() uses; handed on to groups that are parts of this one.
  std::function<std::vector<std::string>(const std::string& name, const std::vector<int>& world_ranks, const std::string& mine)> gather;

  /// Every member's string, by rank; called by all of them, in one order, during connect() only. It runs the engine meanwhile and
  /// takes 2 log2(size) steps. Throws Error of kind timeout or rank_lost.
  std::vector<std::string> all_gather(const std::string& mine) const { return gather(name, world_ranks, mine); }
};

/// What a backend is told when a context starts.
struct BackendParams {
  int rank = 0;
  int size = 1;
  int device = 0;
  std::vector<std::string> hosts;       ///< of each world rank: equal strings can share memory
  int cores = 1;                        ///< that the ranks of this host may keep busy together
  bool device_times = false;            ///< whether to measure when operations run on the device: they are traced
  std::shared_ptr<Store> store;
  Deadline deadline;

  /// Whether the ranks of this host outnumber the cores they may keep busy.
  bool oversubscribed() const {
    return std::count(hosts.begin(), hosts.end(), hosts[static_cast<std::size_t>(rank)]) > cores;
  }
};

/// What a backend declares about itself beyond its operations. Medley asks here instead of knowing backends by name.
enum class Trait : std::uint8_t {
  default_for_host,   ///< carries host memory where neither a rule nor the route table decides
  default_for_cuda,   ///< the same for CUDA memory
  inside_host,        ///< can be the inner half of a pair such as shm+mpi
  slow_reductions,    ///< Medley's algorithms over its messages are faster than its own nonblocking reductions
  connects_lazily,    ///< in streams: the first message to a peer connects the pair, which a running collective could block
};
inline constexpr int trait_count = 5;

/// One communication library in one context.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;
  /// Of the library behind it.
  virtual std::string version() const = 0;
  virtual bool has_memory(Memory memory) const = 0;
  /// Whether it does the operation itself; what it does not is filled in over its sends and receives.
  virtual bool native(Op op, DType dtype, ReduceOp reduce, Memory memory) const = 0;
  /// Why it cannot serve these ranks; empty if it can. The same answer on every one of them.
  virtual std::string refuses(const std::vector<int>& world_ranks) const = 0;
  virtual std::unique_ptr<Lane> connect(const CommParams& group) = 0;
  virtual EventCount* event_count() { return nullptr; }
  /// Whether its own reductions combine in an order that is the same from run to run; where they do not, calls that ask
  /// for `deterministic` are filled in.
  virtual bool fixed_order() const { return false; }
  /// The same answer on every rank.
  virtual bool has(Trait) const { return false; }
  /// Names of algorithms by which it does an operation itself, for Call::algorithm. What some rank lacks is refused on all.
  virtual std::vector<std::string_view> algorithms(Op) const { return {}; }
  /// A rank of the job is known to be dead. A library that cannot go on after that (MPI) ends its pending operations with
  /// Error(rank_lost) and refuses later ones; the comms that contain the rank are aborted without its help.
  virtual void rank_lost(int world_rank) noexcept { static_cast<void>(world_rank); }
};

/// The compiler's C++ ABI and the standard library, whose types cross the boundary between Medley and a plugin.
inline constexpr std::string_view build_abi =
#if defined(_LIBCPP_VERSION)
    "libc++"
#elif defined(_GLIBCXX_USE_CXX11_ABI) && _GLIBCXX_USE_CXX11_ABI
    "libstdc++ (C++11 ABI)"
#else
    "libstdc++ (old ABI)"
#endif
#if defined(__GXX_ABI_VERSION) && __GXX_ABI_VERSION >= 1000
    ", Itanium C++ ABI"
#else
    ", another C++ ABI"
#endif
    ;

/// Sizes of the structures that cross the boundary. They differ where `backend_abi` should have been changed and was not.
struct BoundarySizes {
  std::uint32_t plugin, call, comm_params, backend_params, error;
  bool operator==(const BoundarySizes&) const = default;
};

/// How a backend is found and made. A plugin is a shared object libmedley_backend_NAME.so, in a folder of
/// MEDLEY_BACKEND_PATH or in the folder `medley` beside libmedley.so, that exports
///     extern "C" MEDLEY_API const medley::BackendPlugin* medley_backend();
/// It is opened RTLD_LOCAL and never closed. A library that loads components of its own which need its symbols
/// (Open MPI) is opened again by the plugin: dlopen(…, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD).
/// The first three members are the same in every version and are compared before anything else is read.
struct BackendPlugin {
  std::string_view abi = backend_abi;
  std::string_view build = build_abi;
  BoundarySizes sizes = boundary_sizes();
  std::string_view name;
  /// Why it cannot run on this machine; empty if it can.
  std::string (*unavailable)();
  std::unique_ptr<Backend> (*create)(const BackendParams&);

  static constexpr BoundarySizes boundary_sizes();
};

constexpr BoundarySizes BackendPlugin::boundary_sizes() {
  return {sizeof(BackendPlugin), sizeof(Call), sizeof(CommParams), sizeof(BackendParams), sizeof(Error)};
}

}  // namespace medley

/// What a plugin defines; declared here so that a wrong signature does not compile.
extern "C" MEDLEY_API const medley::BackendPlugin* medley_backend();
