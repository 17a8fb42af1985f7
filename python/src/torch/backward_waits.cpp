#include "backward_waits.hpp"

#include <torch/csrc/autograd/engine.h>

#include <chrono>
#include <memory>

#include "gil.hpp"

namespace medley::torch {
namespace {

using std::chrono::steady_clock;

/// Operations whose futures one call took.
struct Taken {
  std::vector<medley::Work> works;
  bool by_python = false;  ///< Python code may wait for a future wherever it likes; DDP does so at the end only
};

void queue_callback(std::function<void()> callback) {
  ::torch::autograd::Engine::get_default_engine().queue_callback(std::move(callback));
}

/// What is complete when the callbacks that are queued now have run was waited for since `begin`. Of the rest nothing is
/// known.
void watch_callbacks(const std::shared_ptr<Taken>& taken, steady_clock::time_point begin) {
  queue_callback([taken, begin] {
    for (medley::Work& work : taken->works) work.awaited_since(begin);
  });
}

/// The backward pass has computed everything.
void begin_wait(const std::shared_ptr<Taken>& taken) {
  const auto now = steady_clock::now();
  std::erase_if(taken->works, [&](medley::Work& work) {
    if (!work.complete()) return false;
    if (!taken->by_python) work.awaited_since(now);
    return true;
  });
  if (!taken->works.empty()) watch_callbacks(taken, now);
}

}  // namespace

void record_waits_of_backward(const std::vector<medley::Work>& works) {
  if (::torch::autograd::get_current_graph_task_id() < 0) return;
  const auto taken = std::make_shared<Taken>(Taken{works, holds_gil()});
  if (::torch::autograd::get_current_node()) return queue_callback([taken] { begin_wait(taken); });
  // In a callback at the end of the pass: with static_graph, DDP issues all operations of its first step there, and then waits.
  if (!taken->by_python) watch_callbacks(taken, steady_clock::now());
}

}  // namespace medley::torch
