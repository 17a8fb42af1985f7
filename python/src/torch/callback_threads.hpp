// The threads that complete torch futures and so run their callbacks: DDP's communication hooks, PowerSGD,
// fut.then(...). HostWork and StreamWork complete theirs here.
//
// A callback is the program's code. It may wait for another future, and it may issue operations and wait for
// them. So it never runs on the progress thread, which may be the only one that progresses that operation,
// nor on a thread of the program that is inside a Medley call and happens to find the operation complete.
//
// Who may wait for whom:
// - The thread that finds an operation complete only queues a task. It waits for nothing.
// - While the queue is not empty, a thread is free to take from it: both submitting a task and taking one
//   while others are queued ensure that, by starting a new thread if necessary. A task therefore waits for a
//   thread to start or wake up, never for a callback to return. There are as many threads as callbacks that
//   block, plus one or two; idle threads end after some seconds.
// - The queue's lock is held for a few instructions. The GIL is never requested under it, and tasks run and
//   are destroyed without it.
//
// Order: callbacks of one future run one after the other, as they were attached. Callbacks of different
// futures may run at the same time.
#pragma once

#include <chrono>
#include <functional>

namespace medley::torch {

/// Runs the task on another thread. Logs what it throws.
void run_apart(std::function<void()> task);
/// Waits until no task is queued or running, at most that long, and returns whether that is so. Called
/// without the GIL, before the interpreter ends: Python ends a thread that asks for the GIL after that.
bool wait_for_callbacks(std::chrono::milliseconds at_most);

}  // namespace medley::torch
