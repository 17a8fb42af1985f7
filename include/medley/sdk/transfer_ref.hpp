// Owns a transfer until the engine takes it over, so that an exception between making and starting it releases it.
// Used by lanes whose start() does more than make a transfer.
#pragma once

#include <medley/backend.hpp>
#include <memory>

namespace medley {

struct ReleaseTransfer {
  void operator()(Transfer* transfer) const noexcept { transfer->release(); }
};

/// Calls Transfer::release() instead of deleting. Its own release(), as of every unique_ptr, hands the transfer over:
/// to return from start().
template <class T = Transfer>
using TransferRef = std::unique_ptr<T, ReleaseTransfer>;

/// Polls a transfer in the start() that made it. Null if it is already complete, so not for receives: they report their
/// sender.
inline Transfer* first_poll(TransferRef<> transfer) {
  return transfer->poll() == Poll::complete ? nullptr : transfer.release();
}

}  // namespace medley
