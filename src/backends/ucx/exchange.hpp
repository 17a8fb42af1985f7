// Everyone's string to everyone through the store of a comm, while the engine goes on.
// Used when a comm is connected; rank 0 collects, so that n ranks cost the store 3n requests and not n².
#pragma once

#include <medley/backend.hpp>
#include <string>
#include <vector>

namespace medley::ucx {

/// `alive` throws when a member is known to be lost; asked now and then. Error(timeout) names who is missing.
std::vector<std::string> exchange(const Group& group, const std::string& mine,
                                  const std::function<void()>& alive);

}  // namespace medley::ucx
