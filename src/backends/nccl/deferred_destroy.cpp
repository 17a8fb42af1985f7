#include "backends/nccl/deferred_destroy.hpp"

#include <mutex>
#include <vector>

#include "backends/nccl/track.hpp"

namespace medley::nccl {
namespace {

struct Retiree {
  int device;
  std::unique_ptr<Communicator> communicator;
};

struct Retirees {
  std::mutex mutex;
  std::vector<Retiree> waiting;
  int lanes = 0;
};

Retirees& retirees() {
  static auto* const all = new Retirees;  // lanes may outlive static objects
  return *all;
}

void take_down_all() {
  std::vector<Retiree> waiting;
  {
    const std::lock_guard lock(retirees().mutex);
    waiting.swap(retirees().waiting);
  }
  for (Retiree& one : waiting) {
    try {
      const cuda::Scope scope(one.device);
      one.communicator.reset();
    } catch (const Error&) {
      static_cast<void>(one.communicator.release());  // CUDA has failed altogether, and NCCL with it
    }
  }
}

}  // namespace

void retire(std::unique_ptr<Communicator> communicator, int device) {
  if (!communicator) return;
  {
    const std::lock_guard lock(retirees().mutex);
    retirees().waiting.push_back({device, std::move(communicator)});
  }
  take_down_retired();
}

void take_down_retired() {
  if (Track::under_way() == 0) take_down_all();
}

LaneCount::LaneCount() {
  const std::lock_guard lock(retirees().mutex);
  ++retirees().lanes;
}

LaneCount::~LaneCount() {
  {
    const std::lock_guard lock(retirees().mutex);
    if (--retirees().lanes > 0) return;
  }
  take_down_all();
}

}  // namespace medley::nccl
