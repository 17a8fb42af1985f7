#include "group.hpp"

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <numeric>
#include <utility>

#include "store.hpp"

namespace medley::torch {
namespace {

std::mutex world_mutex;
std::weak_ptr<SharedContext> world;  // of the default group, while it is in use

std::shared_ptr<SharedContext> world_context() {
  const std::lock_guard lock(world_mutex);
  return world.lock();
}

/// Disjoint groups of one name have different first ranks.
std::string with_first_rank(const std::string& name, const std::vector<int>& ranks) {
  return ranks.empty() || ranks.front() == 0 ? name : name + "@" + std::to_string(ranks.front());
}

}  // namespace

std::string SharedContext::comm_name(const std::string& group, const std::vector<int>& ranks) {
  std::string name = with_first_rank(group, ranks);
  const std::lock_guard lock(mutex_);
  const int times = made_[name]++;
  if (times > 0) name += "#" + std::to_string(times);
  return name;
}

Joined split(const Joined& parent, const Membership& m, std::vector<int> ranks) {
  const CommOptions options{.rules = m.rules, .deadline = m.timeout, .exact = m.exact};
  const std::string name = parent.context->comm_name(m.name, ranks);
  Comm comm = parent.context->context.make_comm(name, ranks, options);
  return {parent.context, comm, std::move(ranks)};
}

Joined join(const Membership& m) {
  const bool default_group = m.global_ranks.empty() && !m.own_context;
  if (!default_group && !m.own_context) {
    if (auto context = world_context()) return split({context, {}, {}}, m, m.global_ranks);
  }
  // A program may destroy its groups and make new ones over the same store, which still holds the old groups'
  // keys.
  const std::string place = with_first_rank("medley", m.global_ranks) + "/";
  const std::int64_t times = m.store->add(place + "joined/" + std::to_string(m.rank), 1);
  const auto store = c10::make_intrusive<c10d::PrefixStore>(place + std::to_string(times) + "/", m.store);
  ContextOptions options{.backends = m.backends,
                         .rules = m.rules,
                         .rank = m.rank,
                         .size = m.size,
                         .store = std::make_shared<TorchStore>(store),
                         .device = m.device,
                         .deadline = m.timeout,
                         .exact = m.exact,
                         .progress_thread = UseThread::always,
                         .announce_losses = true};   // torchrun ends the survivors soon after a death
  auto context = std::make_shared<SharedContext>(std::move(options), m.device);
  if (default_group) {
    const std::lock_guard lock(world_mutex);
    world = context;
  }
  std::vector<int> everyone(static_cast<std::size_t>(m.size));
  std::iota(everyone.begin(), everyone.end(), 0);
  return {context, context->context.world(), std::move(everyone)};
}

void leave(const std::shared_ptr<SharedContext>& context) {
  const std::lock_guard lock(world_mutex);
  if (world.lock() == context) world.reset();
}

}  // namespace medley::torch
