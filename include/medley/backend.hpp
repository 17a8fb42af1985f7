// What a communication library must implement to carry Medley's operations: the one header a backend includes.
// Nothing here may block: the engine starts operations, then polls them, and holds its lock around every call.
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
#include <medley/sdk/poll_list.hpp>
#include <medley/store.hpp>
#include <medley/types.hpp>

namespace medley {

/// The version of the classes below. It changes whenever one of them does; a plugin built against another version is
/// refused.
inline constexpr std::string_view backend_abi = "medley-backend-15";

/// Medley's own sends and receives, such as those of filled-in collectives, have tags from -internal_tags to -1, which
/// users cannot pass. They match like all others: by peer and tag, in order.
inline constexpr int internal_tags = 1 << 15;

class ErrorFeedback;
class Transfer;

/// The dependencies of an operation on CUDA memory. Separate from Call, which holds only a pointer to it, because every
/// small operation writes a whole Call.
struct Dependencies {
  /// An event (cudaEvent_t) of the user's stream at issue; for stream-ordered lanes valid only during start()
  void* ready = nullptr;
  /// Earlier operations on the same memory, launched in streams and perhaps still running: start() makes its own stream
  /// wait for each of them with order(). Passed only to stream-ordered lanes, and only during start().
  std::span<Transfer* const> transfers{};
};

/// One tensor of a fused collective.
struct FusedTensor {
  const void* in = nullptr;  ///< null where this rank contributes nothing
  void* out = nullptr;       ///< null where this rank receives nothing
  std::int64_t count = 0;    ///< elements of one part: the large side of an all_gather has one part for each rank
};

/// The tensors of a fused collective, in the order in which they were issued. Separate from Call, which every small
/// operation writes.
struct TensorList {
  std::span<const FusedTensor> tensors{};
};

/// One operation as a backend sees it: already validated, plain data, valid until its transfer is released.
struct Call {
  Op op{};
  DType dtype{};
  ReduceOp reduce{};
  Memory memory{};
  bool deterministic = false;
  bool captured = false;       ///< the stream is being captured in a graph: only on stream-ordered lanes
  int root = 0;                ///< the root, or the peer of a send or receive (any_source allowed)
  int tag = 0;                 ///< user tags are not negative; Medley's own are (internal_tags)
  const void* in = nullptr;    ///< null where this rank contributes nothing
  void* out = nullptr;         ///< null where this rank receives nothing
  std::int64_t in_count = 0;   ///< elements this rank contributes, all parts together
  std::int64_t out_count = 0;  ///< elements this rank receives, all parts together
  /// v-collectives: one entry per rank of the comm, in elements; null elsewhere.
  const std::int64_t* in_counts = nullptr;
  const std::int64_t* in_offsets = nullptr;
  const std::int64_t* out_counts = nullptr;
  const std::int64_t* out_offsets = nullptr;
  std::string_view algorithm{};       ///< empty: the backend's own choice
  ErrorFeedback* feedback = nullptr;  ///< of a compressed reduction; backends never see one
  /// On CUDA memory: the user's stream (cudaStream_t); null is the legacy default stream
  void* stream = nullptr;
  const Dependencies* dependencies = nullptr;  ///< on CUDA memory: its dependencies
  /// A fused collective: the tensors that it moves together, in place of `in` and `out`, which are null. The counts are
  /// the sums over the tensors. Passed only to lanes that take lists (Lane::takes_lists).
  const TensorList* list = nullptr;
};

/// Times of an operation on a device, on the host's clock; unknown ones are the clock's epoch.
struct DeviceTimes {
  std::chrono::steady_clock::time_point begun, ended;
  std::chrono::steady_clock::time_point awaited;  ///< when the caller's stream reached its wait for the operation
};

/// What poll() found. A waiting thread may sleep after `waiting`, never after `moved`.
enum class Poll : std::uint8_t { waiting, moved, complete };

/// A started operation.
class Transfer {
 public:
  /// Makes progress. Long work returns `moved` from time to time, so that other operations progress too. Throws when
  /// the transfer cannot complete; it may then only be released.
  virtual Poll poll() = 0;
  /// Called after start(), perhaps several times, until it returns true. True: the engine polls this transfer only
  /// after it has put `owner` on `list`, which it may do in a start(), poll() or progress() of its lane. If it is
  /// complete by then, it sets `owner.done` and is not polled again; otherwise it is polled as usual from then on.
  /// False: the engine polls it as usual. Thousands of transfers that wait for their lane then cost nothing.
  virtual bool poll_when_ready(PollList& /*list*/, Polled& /*owner*/) { return false; }
  /// Ranks of the comm that it waits for, for error messages.
  virtual std::vector<int> awaited() const { return {}; }
  /// For a completed receive: the sender.
  virtual int source() const { return -1; }
  /// For a completed receive: the number of bytes received, or -1 where the library does not say. Filled-in collectives
  /// use it to detect that ranks passed different counts.
  virtual std::int64_t received() const { return -1; }
  /// On CUDA memory: whether the library's work is in its stream, so that other work can be ordered after it. Becomes
  /// true in poll() at the latest. Operations on host memory are launched when they are started.
  virtual bool launched() { return true; }
  /// For a launched operation on CUDA memory: makes a stream wait for it and returns at once; false where only polling
  /// detects its completion.
  virtual bool order(void* /*stream*/) { return false; }
  /// For a completed operation on CUDA memory, if BackendParams::device_times is set.
  virtual DeviceTimes device_times() const { return {}; }
  /// Returns the transfer to its lane.
  virtual void release() noexcept { delete this; }
  /// Releases an incomplete transfer, after its lane was aborted or poll() threw. `memory` owns everything the
  /// operation uses besides the caller's buffers: counts and offsets, scratch, pinned blocks. A library that cannot
  /// cancel what it has started (MPI) keeps `memory` until it no longer uses it; all others drop it here.
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
  /// Starts an operation; null when it is already complete (except for receives, which must report their sender).
  /// Collectives come in the same order on all ranks of the comm.
  virtual Transfer* start(const Call& call) = 0;
  /// For a send on host memory that names no algorithm, before start(): true if the message has left, so that the
  /// caller's memory is free and nothing of it needs progress() here. False, with nothing done: start() it. No call of
  /// any other operation is between them.
  virtual bool send_now(int /*to*/, int /*tag*/, const void* /*data*/, std::size_t /*bytes*/) { return false; }
  /// Work besides the transfers: control messages, unexpected arrivals. Called while anything is pending.
  virtual void progress() {}
  /// True while an operation that is complete for the caller still needs progress() to reach its peer.
  virtual bool undelivered() const { return false; }
  /// Whether a collective may start before the previous one on this lane has completed.
  virtual bool concurrent_collectives() const { return true; }
  /// Whether operations on CUDA memory are stream-ordered: they honour Call::dependencies and implement order(),
  /// collectives of the lane run one after another in launch order, and launches of several such lanes keep the order
  /// of issue.
  virtual bool in_streams() const { return false; }
  /// Whether start() accepts a call with a list of tensors. The tensors of other lanes are packed into one buffer
  /// first.
  virtual bool takes_lists() const { return false; }
  /// Throws when a peer is known to be dead, has left while it is awaited, or has aborted. Called from time to time
  /// while a thread waits.
  virtual void check() {}
  /// Makes every pending and later operation fail, here and on the peers, which get an error of the same kind that
  /// names the same ranks. Starts the abort and returns at once.
  virtual void abort(const Error& why) noexcept = 0;
  /// After abort(), called until it returns true: the lane no longer writes user memory, and every peer that can be
  /// reached has been notified. The lane bounds the time this takes.
  virtual bool poll_abort() noexcept { return true; }
  /// Before the lane is destroyed, called until it returns true: everything that is complete for the callers has
  /// reached the peers, so that the destructor does not wait. The lane bounds the time this takes. Nothing is pending,
  /// and nothing is started any more.
  virtual bool poll_close() noexcept { return true; }
};

/// An event count: lets a thread sleep until a peer has written something. A backend without one is polled at short
/// intervals.
class EventCount {
 public:
  virtual ~EventCount() = default;
  /// Backoff: how many times a waiting thread polls before it yields its core, and yields before it sleeps.
  virtual int spins() const = 0;
  virtual int yields() const = 0;
  /// Whether the cores are oversubscribed, so that ranks progress only by yielding to one another.
  virtual bool oversubscribed() const = 0;
  /// Announces that the caller is about to sleep; it polls once more between this and sleep().
  /// Called without the engine's lock.
  virtual std::uint32_t prepare() = 0;
  /// Sleeps until a peer or wake_own() signals, if neither has since prepare() returned `ticket`. May return early, and
  /// ends the announcement. Called without the engine's lock.
  virtual void sleep(std::uint32_t ticket, std::chrono::nanoseconds at_most) = 0;
  /// Ends the announcement without a sleep: the poll after prepare() found something.
  virtual void cancel() = 0;
  /// Wakes the other sleeping threads of this rank.
  virtual void wake_own() noexcept = 0;
};

/// The ranks of a comm, as a backend needs them to connect (team parameters).
struct CommParams {
  std::string name;  ///< the comm's name, unique in the job
  int rank = 0;
  int size = 1;
  std::vector<int> world_ranks;  ///< of each member
  std::shared_ptr<Store> store;  ///< private to this comm and backend
  Deadline deadline;
  std::function<void()> progress;  ///< call it in every loop that waits for a peer
  /// Implements all_gather(); passed on to comms of some of these ranks.
  std::function<std::vector<std::string>(const std::string& name, const std::vector<int>& world_ranks,
                                         const std::string& mine)>
      gather;

  /// Every member's string, by rank. All members call it, in the same order, during connect() only. It runs the engine
  /// meanwhile and takes 2 log2(size) steps. Throws Error of kind timeout or rank_lost.
  std::vector<std::string> all_gather(const std::string& mine) const { return gather(name, world_ranks, mine); }
};

/// The parameters that a backend receives when a context starts.
struct BackendParams {
  int rank = 0;
  int size = 1;
  int device = 0;                  ///< the CUDA device of this rank
  std::vector<std::string> hosts;  ///< of each world rank: ranks with equal strings can share memory
  int cores = 1;                   ///< the cores that all ranks of this host together may keep busy
  bool device_times = false;       ///< whether to measure when operations run on the device, for the trace
  std::shared_ptr<Store> store;
  Deadline deadline;

  /// Whether the cores are oversubscribed: this host has more ranks than cores they may keep busy.
  bool oversubscribed() const {
    return std::count(hosts.begin(), hosts.end(), hosts[static_cast<std::size_t>(rank)]) > cores;
  }
};

/// What a backend declares about itself beyond its operations. Medley asks here instead of knowing backends by name.
enum class Trait : std::uint8_t {
  default_for_host,  ///< carries host memory where neither a rule nor the route table decides
  default_for_cuda,  ///< the same for CUDA memory
  inside_host,       ///< can be the inner half of a pair such as shm+mpi
  slow_reductions,   ///< Medley's algorithms over its messages are faster than its own nonblocking reductions
  /// In streams: the first message to a peer connects the pair, which a running collective could block
  connects_lazily,
  sends_now,  ///< Lane::send_now() sends small messages
};
inline constexpr int trait_count = 6;

/// One communication library in one context.
class Backend {
 public:
  virtual ~Backend() = default;
  /// The plugin's name, by which calls, rules and tables choose it.
  virtual std::string_view name() const = 0;
  /// The version of the underlying library.
  virtual std::string version() const = 0;
  /// Whether its lanes take buffers in this memory. If they take none in CUDA memory, Medley stages those through host
  /// memory.
  virtual bool has_memory(Memory memory) const = 0;
  /// Whether the library implements the operation; all others are filled in over its sends and receives.
  virtual bool native(Op op, DType dtype, ReduceOp reduce, Memory memory) const = 0;
  /// Why it cannot serve these ranks; empty if it can. Gives the same answer on every one of them.
  virtual std::string refuses(const std::vector<int>& world_ranks) const = 0;
  /// Makes the lane of a comm. All its members call it together. `params` is valid during the call.
  virtual std::unique_ptr<Lane> connect(const CommParams& params) = 0;
  /// Where a thread that waits for this backend's lanes sleeps. Null: it polls at short intervals. Belongs to the
  /// backend.
  virtual EventCount* event_count() { return nullptr; }
  /// Whether its own reductions combine in the same order in every run; otherwise calls with `deterministic` are filled
  /// in.
  virtual bool fixed_order() const { return false; }
  /// The same answer on every rank.
  virtual bool has(Trait) const { return false; }
  /// Names of algorithms by which it does an operation itself, for Call::algorithm. What some rank lacks is refused on
  /// all.
  virtual std::vector<std::string_view> algorithms(Op) const { return {}; }
  /// A rank of the job is known to be dead. A library that cannot go on after that (MPI) ends its pending operations
  /// with Error(rank_lost) and refuses later ones; the comms that contain the rank are aborted without its help.
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

/// Sizes of the structures that cross the boundary. They differ where `backend_abi` should have been changed and was
/// not.
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
  /// Where the program lists no backends, all others are preferred to it.
  bool last_choice = false;

  static constexpr BoundarySizes boundary_sizes();
};

constexpr BoundarySizes BackendPlugin::boundary_sizes() {
  return {sizeof(BackendPlugin), sizeof(Call), sizeof(CommParams), sizeof(BackendParams), sizeof(Error)};
}

}  // namespace medley

/// What a plugin defines; declared here so that a wrong signature does not compile.
extern "C" MEDLEY_API const medley::BackendPlugin* medley_backend();
