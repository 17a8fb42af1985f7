// The GIL, for code that torch calls with or without it.
#pragma once

#include <functional>

namespace medley::torch {

/// Runs it without the GIL, if this thread holds it: code that waits for other threads must not keep the GIL
/// from them.
void without_gil(const std::function<void()>& body);
/// Whether Python code calls, rather than C++ code of torch that has released the GIL.
bool holds_gil();
/// Runs signal handlers and throws what they raise, such as KeyboardInterrupt.
void check_signals();
/// Whether the interpreter is ending or has ended: its objects must not be touched any more.
bool python_is_ending();

}  // namespace medley::torch
