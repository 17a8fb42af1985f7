// MPI's error codes as sentences. check() handles every call's result; nothing here ends the process.
#pragma once

#include <mpi.h>

#include <medley/error.hpp>
#include <string>

namespace medley::mpi {

/// What MPI says about a code, on one line.
std::string text_of(int code);

/// Throws Error(system) with the call's name and MPI's words when it failed.
void check(int code, const char* call);

bool is_truncation(int code);

}  // namespace medley::mpi
