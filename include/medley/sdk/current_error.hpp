// Converts any exception to a medley::Error, so that whatever a plugin throws fails one operation or one comm and
// nothing else. Used by the engine around every call to a lane, and by the adapter for blocking libraries.
#pragma once

#include <exception>
#include <medley/error.hpp>
#include <medley/export.hpp>

namespace medley {

/// From the exception being handled; called inside a catch block.
MEDLEY_API Error current_error() noexcept;
MEDLEY_API Error as_error(const std::exception_ptr& thrown) noexcept;

/// The kind that a peer's message encodes as a number; `system` for an unknown number.
MEDLEY_API ErrorKind error_kind(int number) noexcept;

}  // namespace medley
