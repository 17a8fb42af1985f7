// UCX's status codes as Medley's errors.
#pragma once

#include <ucs/type/status.h>

#include <medley/error.hpp>
#include <string>

namespace medley::ucx {

/// Throws Error(system) unless the call succeeded; `what` completes "UCX cannot …".
void require(ucs_status_t status, const std::string& what);

/// What a failed message means: a lost peer where the connection broke, otherwise an error of the library.
Error error_of(ucs_status_t status, int peer);

}  // namespace medley::ucx
