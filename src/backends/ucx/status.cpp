#include "backends/ucx/status.hpp"

#include <fmt/format.h>

namespace medley::ucx {

void require(ucs_status_t status, const std::string& what) {
  if (status == UCS_OK) return;
  throw Error(ErrorKind::system, fmt::format("UCX cannot {}: {}", what, ucs_status_string(status)));
}

Error error_of(ucs_status_t status, int peer) {
  switch (status) {
    case UCS_ERR_CONNECTION_RESET:
    case UCS_ERR_ENDPOINT_TIMEOUT:
    case UCS_ERR_UNREACHABLE:
    case UCS_ERR_NOT_CONNECTED:
    case UCS_ERR_REJECTED:
    case UCS_ERR_IO_ERROR:
    case UCS_ERR_TIMED_OUT:
      return Error(ErrorKind::rank_lost,
                   fmt::format("the connection to rank {} broke ({})", peer, ucs_status_string(status)),
                   {.ranks = {peer}});
    case UCS_ERR_CANCELED: return Error(ErrorKind::aborted, "the comm was given up");
    default:
      return Error(ErrorKind::system,
                   fmt::format("UCX failed a message with rank {}: {}", peer, ucs_status_string(status)));
  }
}

}  // namespace medley::ucx
