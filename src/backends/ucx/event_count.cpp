#include "backends/ucx/event_count.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <medley/sdk/may_block.hpp>

#include "backends/ucx/status.hpp"

namespace medley::ucx {

WorkerEventCount::WorkerEventCount(const BackendParams& params) {
  oversubscribed_ = params.oversubscribed();
  calls_ = eventfd(0, EFD_SEMAPHORE | EFD_NONBLOCK | EFD_CLOEXEC);
  if (calls_ < 0) throw Error(ErrorKind::system, std::string("cannot make an event file: ") + std::strerror(errno));
}

WorkerEventCount::~WorkerEventCount() { close(calls_); }

void WorkerEventCount::attach(ucp_worker_h worker) {
  worker_ = worker;
  require(ucp_worker_get_efd(worker, &arrivals_), "give an event file");
}

bool WorkerEventCount::arm() {
  const bool armed = ucp_worker_arm(worker_) == UCS_OK;
  armed_.store(armed, std::memory_order_relaxed);
  if (armed) arm_wanted_.store(false, std::memory_order_relaxed);
  return armed;
}

std::uint32_t WorkerEventCount::prepare() {
  sleepers_.fetch_add(1, std::memory_order_relaxed);
  armed_.store(false, std::memory_order_relaxed);
  arm_wanted_.store(true,
                    std::memory_order_relaxed);  // the poll that follows does it, under the engine's lock
  return 0;
}

void WorkerEventCount::sleep(std::uint32_t, std::chrono::nanoseconds at_most) {
  may_block("UCX to report something");
  if (armed_.load(std::memory_order_relaxed)) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(at_most);
    const timespec timeout{seconds.count(), (at_most - seconds).count()};
    pollfd files[] = {{arrivals_, POLLIN, 0}, {calls_, POLLIN, 0}};
    ppoll(files, 2, &timeout, nullptr);
    std::uint64_t one = 0;
    if (files[1].revents != 0) static_cast<void>(!read(calls_, &one, sizeof one));
  }
  cancel();
}

void WorkerEventCount::cancel() {
  if (sleepers_.fetch_sub(1, std::memory_order_relaxed) == 1) arm_wanted_.store(false, std::memory_order_relaxed);
}

void WorkerEventCount::wake_own() noexcept {
  const auto sleeping = static_cast<std::uint64_t>(std::max(sleepers_.load(std::memory_order_relaxed), 0));
  if (sleeping > 0) static_cast<void>(!write(calls_, &sleeping, sizeof sleeping));
}

}  // namespace medley::ucx
