#include "group.hpp"

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <mutex>

#include "store.hpp"

namespace medley::torch {
namespace {

std::mutex world_mutex;
std::weak_ptr<Context> world;  // of the default group, while it is in use
int world_device = 0;

}  // namespace

Joined join(const Membership& m) {
  if (!m.global_ranks.empty()) {
    std::shared_ptr<Context> context;
    int device = 0;
    {
      const std::lock_guard lock(world_mutex);
      context = world.lock();
      device = world_device;
    }
    if (context) {
      const CommOptions options{.rules = m.rules, .deadline = m.timeout};
      return {context, context->make_comm(m.name, m.global_ranks, options), device};
    }
  }
  // A program may destroy its groups and make new ones over the same store, where the keys of the old ones
  // still stand.
  const std::int64_t times = m.store->add("medley/joined/" + std::to_string(m.rank), 1);
  const auto store = c10::make_intrusive<c10d::PrefixStore>("medley/" + std::to_string(times) + "/", m.store);
  ContextOptions options{.backends = m.backends,
                         .rules = m.rules,
                         .rank = m.rank,
                         .size = m.size,
                         .store = std::make_shared<TorchStore>(store),
                         .device = m.device,
                         .deadline = m.timeout,
                         .progress_thread = UseThread::always};
  auto context = std::make_shared<Context>(std::move(options));
  if (m.global_ranks.empty()) {
    const std::lock_guard lock(world_mutex);
    world = context;
    world_device = m.device;
  }
  return {context, context->world(), m.device};
}

void leave(const std::shared_ptr<Context>& context) {
  const std::lock_guard lock(world_mutex);
  if (world.lock() == context) world.reset();
}

}  // namespace medley::torch
