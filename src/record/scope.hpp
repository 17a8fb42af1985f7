// The process's scope names and the calling thread's current scope, for the recorder.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include <medley/scope.hpp>

namespace medley::core {

/// Whether the process has ever entered a scope; most never do. (relaxed: a thread sees its own scopes)
extern std::atomic<bool> any_scope;
inline bool scopes_exist() noexcept { return any_scope.load(std::memory_order_relaxed); }
/// 0: none.
std::uint32_t current_scope() noexcept;
std::string scope_name(std::uint32_t scope);

}  // namespace medley::core
