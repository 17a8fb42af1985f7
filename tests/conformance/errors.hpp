// The errors that operations must end with. Used by the tests of failures.
#pragma once

#include <gtest/gtest.h>

#include <medley/error.hpp>
#include <optional>

namespace medley::conformance {

/// The error that an operation ended with.
template <class Call>
std::optional<Error> error_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error came";
  return std::nullopt;
}

}  // namespace medley::conformance
