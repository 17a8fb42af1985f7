#include <medley/error.hpp>

#include <utility>

namespace medley {

const char* name(ErrorKind kind) noexcept {
  switch (kind) {
    case ErrorKind::invalid: return "invalid";
    case ErrorKind::unavailable: return "unavailable";
    case ErrorKind::mismatch: return "mismatch";
    case ErrorKind::timeout: return "timeout";
    case ErrorKind::rank_lost: return "rank lost";
    case ErrorKind::aborted: return "aborted";
    case ErrorKind::system: return "system";
  }
  return "unknown";
}

Error::Error(ErrorKind kind, const std::string& sentence, ErrorContext context)
    : std::runtime_error(sentence), kind_(kind), context_(std::move(context)) {}

}  // namespace medley
