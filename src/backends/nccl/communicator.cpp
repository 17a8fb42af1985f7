#include "backends/nccl/communicator.hpp"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <thread>

#include "backends/cuda/cuda.hpp"

namespace medley::nccl {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

// What was launched completes within milliseconds, on an oversubscribed machine within seconds; a lost peer would block
// this for ever.
constexpr auto farewell = 5s;
constexpr auto abort_grace = 5s;

/// Polls without progressing anything else: only for destroying a communicator.
template <class Done>
bool soon(std::chrono::nanoseconds timeout, Done done) {
  const auto until = steady_clock::now() + timeout;
  while (!done()) {
    if (steady_clock::now() > until) return false;
    std::this_thread::sleep_for(50us);
  }
  return true;
}

}  // namespace

std::string version_text() {
  int code = 0;
  if (ncclGetVersion(&code) != ncclSuccess) return "unknown";
  return fmt::format("NCCL {}.{}.{}", code / 10000, code / 100 % 100, code % 100);
}

Communicator::Communicator(int ranks, int rank, const ncclUniqueId& id) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  config.splitShare = 1;  // with fast()
  const ncclResult_t result = ncclCommInitRankConfig(&comm_, ranks, id, rank, &config);
  busy_ = true;
  if (result == ncclSuccess || result == ncclInProgress) return;
  const std::string why = ncclGetErrorString(result);
  abort();
  throw Error(ErrorKind::system, fmt::format("NCCL could not make a communicator: {}", why));
}

bool Communicator::shares_connections() {
  static const bool shares = [] {
    const char* said = std::getenv("NCCL_COMM_SPLIT_SHARE_RESOURCES");  // overrides what a program asks for
    return !said || std::string_view(said) != "0";
  }();
  return shares;
}

void Communicator::make_fast(int rank) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 1;
  accept(ncclCommSplit(comm_, 0, rank, &fast_, &config), "ncclCommSplit");
}

void Communicator::fail(ncclResult_t result, const char* what) {
  const char* detail = comm_ ? ncclGetLastError(comm_) : nullptr;
  throw Error(
      result == ncclRemoteError ? ErrorKind::rank_lost : ErrorKind::system,
      fmt::format("{}: {}{}{}", what, ncclGetErrorString(result), detail && *detail ? ": " : "", detail ? detail : ""));
}

ncclResult_t Communicator::state_of(ncclComm_t comm) {
  ncclResult_t state = ncclSuccess;
  const ncclResult_t asked = ncclCommGetAsyncError(comm, &state);
  if (asked != ncclSuccess) fail(asked, "NCCL failed");
  if (state != ncclSuccess && state != ncclInProgress) fail(state, "NCCL reports an asynchronous error");
  return state;
}

void Communicator::look_for_errors() {
  if (comm_) state_of(comm_);
  if (fast_) state_of(fast_);
}

bool Communicator::idle() {
  if (!comm_) throw Error(ErrorKind::aborted, "the NCCL communicator was aborted");
  if (state_of(comm_) == ncclInProgress || (fast_ && state_of(fast_) == ncclInProgress)) return false;
  busy_ = false;
  return true;
}

bool Communicator::accept(ncclResult_t result, const char* what) {
  if (result == ncclInProgress) {
    busy_ = true;
    return false;
  }
  if (result != ncclSuccess) fail(result, what);
  return true;
}

/// Runs on its own thread, on the same device: NCCL may never return. The result becomes true when it has.
template <class Work>
static std::shared_ptr<std::atomic<bool>> run_apart(Work work) {
  auto done = std::make_shared<std::atomic<bool>>(false);
  int device = 0;
  cudaGetDevice(&device);
  std::thread([work, done, device] {
    cudaSetDevice(device);
    work();
    done->store(true);
  }).detach();
  return done;
}

void Communicator::abort() noexcept {
  const ncclComm_t comm = std::exchange(comm_, nullptr), fast = std::exchange(fast_, nullptr);
  if (!comm) return;
  abort_limit_ = deadline_after(abort_grace);
  abort_done_ = run_apart([comm, fast] {  // ends the kernels that wait for a peer
    if (fast) ncclCommAbort(fast);
    ncclCommAbort(comm);
  });
}

bool Communicator::poll_abort() const noexcept {
  return !abort_done_ || abort_done_->load() || std::chrono::steady_clock::now() >= abort_limit_;
}

Communicator::~Communicator() {
  if (comm_ && busy_) abort();  // it never connected
  if (!comm_) {
    soon(abort_grace, [this] { return poll_abort(); });
    return;
  }
  // Finalizing flushes what the kernels have passed on and their peers have not yet received. One thread handles each
  // handle to its end, however late: NCCL does not survive a concurrent abort (2.28 ends the process).
  const auto left = run_apart([comm = comm_, fast = fast_] {
    if (fast && ncclCommFinalize(fast) == ncclSuccess) ncclCommDestroy(fast);
    const ncclResult_t result = ncclCommFinalize(comm);
    ncclResult_t state = ncclInProgress;
    const auto finalized = [&] {
      return ncclCommGetAsyncError(comm, &state) != ncclSuccess || state != ncclInProgress;
    };
    const bool flushed = (result == ncclSuccess || result == ncclInProgress) && soon(farewell, finalized);
    if (flushed) {
      ncclCommDestroy(comm);
    } else {
      ncclCommAbort(comm);
    }
  });
  soon(farewell, [&] { return left->load(); });
}

}  // namespace medley::nccl
