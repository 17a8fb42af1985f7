// What every fuzzer demands of a reader: it returns, or rejects its input as invalid.
#pragma once

#include <medley/error.hpp>

template <typename Action>
void survives(Action&& action) {
  try {
    action();
  } catch (const medley::Error& error) {
    if (error.kind() != medley::ErrorKind::invalid) __builtin_trap();
  }
}
