#include <medley/error.hpp>

#include <utility>

#include <medley/sdk/current_error.hpp>
#include <medley/sdk/peer_abort.hpp>
#include <string>

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

Error current_error() noexcept {
  try {
    throw;
  } catch (const Error& error) {
    return error;
  } catch (const std::exception& error) {
    return Error(ErrorKind::system, error.what());
  } catch (...) {
    return Error(ErrorKind::system, "the library threw something that is not a std::exception");
  }
}

ErrorKind error_kind(int number) noexcept {
  return number >= 0 && number <= static_cast<int>(ErrorKind::system) ? static_cast<ErrorKind>(number)
                                                                      : ErrorKind::system;
}

Error peer_abort(int peer, int kind, std::string_view reason, std::vector<int> at_fault) {
  std::string text = "rank " + std::to_string(peer) + " gave up the comm";
  if (!reason.empty()) text.append(": ").append(reason);
  if (at_fault.empty()) at_fault.push_back(peer);
  return Error(error_kind(kind), text, {.ranks = std::move(at_fault)});
}

Error peer_left(int peer) {
  return Error(ErrorKind::rank_lost,
               "rank " + std::to_string(peer) + " left: its process ended, or it destroyed the comm or its context",
               {.ranks = {peer}});
}

Error as_error(const std::exception_ptr& thrown) noexcept {
  try {
    std::rethrow_exception(thrown);
  } catch (...) {
    return current_error();
  }
}

}  // namespace medley
