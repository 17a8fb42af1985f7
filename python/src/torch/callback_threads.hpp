// The threads that complete torch futures. Whoever completes one also runs its callbacks: DDP's communication
// hooks, PowerSGD, fut.then(...). HostWork and StreamWork complete theirs here.
//
// A callback is the program's code. It may wait for another future, and it may issue operations and wait for
// them. So it never runs on the progress thread, which may be the only one that moves that other operation,
// nor on a thread of the program that happens to be inside a Medley call and to find the operation complete.
//
// Who may wait for whom:
// - The thread that finds an operation complete only puts a task into the queue. It waits for nothing.
// - While the queue is not empty a thread is free to take from it: submitting a task makes sure of one, and
// so
//   does a thread that takes a task and leaves others. If there is none, a new one is started. A task
//   therefore waits for a thread to start or wake up, never for a callback to return. As many threads exist
//   as callbacks block, plus one or two; they end after some idle seconds.
// - The lock of the queue is held for a few instructions. Python's lock is never asked for under it, and
// tasks
//   are run and destroyed without it.
//
// Order: callbacks of one future run one after the other, as they were attached. Callbacks of different
// futures may run at the same time.
#pragma once

#include <chrono>
#include <functional>

namespace medley::torch {

/// Runs the task on another thread. What it throws is logged.
void run_apart(std::function<void()> task);
/// Waits until no task is queued or running, at most that long, and says whether that is so. Called without
/// Python's lock, before the interpreter ends: a thread that then asks for Python's lock is ended by Python.
bool wait_for_callbacks(std::chrono::milliseconds at_most);

}  // namespace medley::torch
