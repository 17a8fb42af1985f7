// The process's names of scopes and the calling thread's current one; the recorder asks here.
#pragma once

#include <cstdint>
#include <string>

#include <medley/scope.hpp>

namespace medley::core {

/// 0: none.
std::uint32_t current_scope() noexcept;
std::string scope_name(std::uint32_t scope);

}  // namespace medley::core
