// The one exception that Medley throws. Its text is a sentence for the user; its fields are for programs.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <medley/export.hpp>
#include <medley/types.hpp>

namespace medley {

/// The kind of failure.
enum class ErrorKind : std::uint8_t {
  invalid,      ///< the call or the input is wrong; nothing was sent
  unavailable,  ///< a backend, a resource or a capability is missing
  mismatch,     ///< ranks issued different operations
  timeout,      ///< the deadline passed
  rank_lost,    ///< a rank died or was cut off
  aborted,      ///< the comm was aborted
  system,       ///< the operating system or a library refused
};
MEDLEY_API const char* name(ErrorKind kind) noexcept;

/// Where it failed; fields that do not apply stay empty.
struct ErrorContext {
  std::optional<Op> op{};
  std::string comm{};                       ///< the comm's name
  std::optional<std::uint64_t> sequence{};  ///< the operation's number on its comm
  std::string backend{};
  std::vector<int> ranks{};  ///< the ranks awaited or at fault
};

/// Thrown by every Medley call that fails.
class MEDLEY_API Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& sentence, ErrorContext context = {});
  ErrorKind kind() const noexcept { return kind_; }
  const ErrorContext& context() const noexcept { return context_; }

 private:
  ErrorKind kind_;
  ErrorContext context_;
};

}  // namespace medley
