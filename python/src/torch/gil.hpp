// Python's lock, from code that torch calls with and without it.
#pragma once

#include <functional>

namespace medley::torch {

/// Runs it without the lock, if this thread has it: what waits for other threads must not keep it from them.
void without_gil(const std::function<void()>& body);
/// Lets the handlers of signals run and throws what they raise, such as KeyboardInterrupt.
void check_signals();
/// Whether the interpreter has begun to end, or has ended: its objects must not be touched any more.
bool python_is_ending();

}  // namespace medley::torch
