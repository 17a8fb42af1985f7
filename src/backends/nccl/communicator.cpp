#include "backends/nccl/communicator.hpp"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include "backends/cuda/cuda.hpp"

namespace medley::nccl {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

// What was launched is on its way within milliseconds; a peer that is gone would keep us for ever.
constexpr auto farewell = 2s;
constexpr auto abort_grace = 5s;

/// Polls, without yielding to anybody: only for the end of a communicator.
template <class Done>
bool soon(std::chrono::nanoseconds patience, Done done) {
  const auto until = steady_clock::now() + patience;
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
  const ncclResult_t result = ncclCommInitRankConfig(&comm_, ranks, id, rank, &config);
  busy_ = true;
  if (result == ncclSuccess || result == ncclInProgress) return;
  const std::string why = ncclGetErrorString(result);
  abort();
  throw Error(ErrorKind::system, fmt::format("NCCL could not make a communicator: {}", why));
}

void Communicator::fail(ncclResult_t result, const char* what) {
  const char* detail = comm_ ? ncclGetLastError(comm_) : nullptr;
  throw Error(ErrorKind::system, fmt::format("{}: {}{}{}", what, ncclGetErrorString(result),
                                             detail && *detail ? ": " : "", detail ? detail : ""));
}

bool Communicator::idle() {
  if (!comm_) throw Error(ErrorKind::aborted, "the NCCL communicator was aborted");
  ncclResult_t state = ncclSuccess;
  const ncclResult_t asked = ncclCommGetAsyncError(comm_, &state);
  if (asked != ncclSuccess) fail(asked, "NCCL failed");
  if (state == ncclInProgress) return false;
  if (state != ncclSuccess) fail(state, "NCCL reports an asynchronous error");
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

void Communicator::abort() noexcept {
  ncclComm_t comm = std::exchange(comm_, nullptr);
  if (!comm) return;
  // It ends the kernels that wait for a peer. On a thread of its own, since nothing promises that it returns.
  const auto done = std::make_shared<std::atomic<bool>>(false);
  int device = 0;
  cudaGetDevice(&device);
  std::thread([comm, done, device] {
    cudaSetDevice(device);
    ncclCommAbort(comm);
    done->store(true);
  }).detach();
  soon(abort_grace, [&] { return done->load(); });
}

Communicator::~Communicator() {
  if (!comm_) return;
  try {
    // Finalizing flushes what the kernels have handed over and their peers have not yet taken.
    const ncclResult_t result = busy_ ? ncclInternalError : ncclCommFinalize(comm_);
    if ((result == ncclSuccess || result == ncclInProgress) && soon(farewell, [this] { return idle(); })) {
      ncclCommDestroy(std::exchange(comm_, nullptr));
      return;
    }
  } catch (const Error&) {
    // It is left by force below.
  }
  abort();
}

}  // namespace medley::nccl
