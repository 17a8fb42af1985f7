// Starts a non-blocking connect. Used for links and probes of the control thread.
#pragma once

#include <cstdint>
#include <string>

#include <medley/sdk/descriptor.hpp>

namespace medley::control {

/// Empty when it failed at once.
Descriptor begin_connect(const std::string& numeric_address, std::uint16_t port);

}  // namespace medley::control
