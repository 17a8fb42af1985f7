// The process's scope names and the calling thread's current scope, for the recorder.
#pragma once

#include <cstdint>
#include <string>

#include <medley/scope.hpp>

namespace medley::core {

/// 0: none.
std::uint32_t current_scope() noexcept;
std::string scope_name(std::uint32_t scope);

}  // namespace medley::core
