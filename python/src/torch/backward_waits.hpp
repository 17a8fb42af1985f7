// When the program waited for operations whose futures were taken in a backward pass, for recordings: torch's futures do
// not say when somebody waits for them (ivalue::Future is final and its wait() not virtual). HostWork calls it.
//
// DDP takes a future of each operation in the backward pass and waits for all of them at its end, in a callback of autograd.
// Those callbacks run in the order in which they were queued, and DDP queues its own after the last operation. A
// callback that is queued with the operation runs just before DDP waits, and one that this callback queues runs just after.
// What completed in between was waited for.
#pragma once

#include <medley/work.hpp>

#include <vector>

namespace medley::torch {

/// Called by the thread that takes the future, after Work::awaited_elsewhere(). Without effect outside of backward passes.
void record_waits_of_backward(const std::vector<medley::Work>& works);

}  // namespace medley::torch
