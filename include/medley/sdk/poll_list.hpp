// The transfers to poll in the next pass among those that wait for their lane (Transfer::poll_when_ready). A pass then
// costs as much as there is to do, not as much as is pending. The engine owns the list, under its lock.
#pragma once

#include <medley/sdk/intrusive_list.hpp>

namespace medley {

/// The engine's entry for a transfer, which the transfer puts on the list when it should be polled.
struct Polled {
  ListLinks<Polled> among_ready;
  /// Set by the transfer before it joins the list: it is complete, and poll() need not be called
  bool done = false;
};
using PollList = IntrusiveList<Polled, &Polled::among_ready>;

}  // namespace medley
