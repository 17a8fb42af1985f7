// The transfers that asked to be polled: a transfer that only its lane can move on waits outside of it, and a pass over the pending
// operations costs as much as there is to do, not as much as is pending. The engine owns the list, under its lock.
#pragma once

#include <medley/sdk/intrusive_list.hpp>

namespace medley {

/// Who polls a transfer.
struct Polled {
  ListLinks<Polled> among_ready;
  bool done = false;      ///< set by a transfer that joins the list: its poll() would say so
};
using PollList = IntrusiveList<Polled, &Polled::among_ready>;

}  // namespace medley
