// Runs one rank's part of a program on the runtime and compares the results with the oracle.
#pragma once

#include <chrono>
#include <functional>
#include <medley/medley.hpp>
#include <string>

#include "soak/oracle.hpp"

namespace medley::soak {

/// Empty when all memory and every sender matched the oracle; otherwise what was wrong. Throws the runtime's
/// first error, after passing it to `complain`: other threads of the rank may be stuck by then.
std::string run_program(Context& context, const Program& program, const Oracle& oracle, Memory memory,
                        const std::function<void(const std::exception&)>& complain);

}  // namespace medley::soak
