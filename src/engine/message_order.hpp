// The messages of a lane that are not started yet, and which of them a new one must follow: libraries match messages of
// one peer, direction and tag in order. Part of the scheduler.
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "engine/operation.hpp"

namespace medley::core {

class MessageOrder {
 public:
  /// On a stream lane, messages of a pair and direction share a communicator, whatever their tags.
  explicit MessageOrder(bool by_tag = true) : by_tag_(by_tag) {}
  bool empty() const { return channels_.empty(); }

  /// Whether a message of this call must wait for another to start.
  bool holds(const Call& call) const {
    bool any = false;
    if (!channels_.empty()) each_before(call, [&any](Operation&) { any = true; });
    return any;
  }
  /// Calls `visit` for the direct predecessors of the message: the last one of its own peer. A receive from any source
  /// may match every peer's messages, so it follows the last of each, and each follows it.
  template <class Visit>
  void each_before(const Call& message, Visit&& visit) const {
    const auto found = channels_.find(channel_of(message));
    if (found == channels_.end()) return;
    const int peer = message.root;
    for (auto at = found->second.rbegin(); at != found->second.rend(); ++at) {
      const int other = (*at)->call.root;
      if (peer >= 0 && other >= 0 && other != peer) continue;
      visit(**at);
      if (other < 0 || other == peer) return;  // this one follows all earlier ones
    }
  }
  void add(Operation& message) { channels_[channel_of(message.call)].push_back(&message); }
  /// The message has started, or never will.
  void remove(Operation& message) {
    const auto found = channels_.find(channel_of(message.call));
    if (found == channels_.end()) return;
    // They start in order, so it is near the front
    const auto at = std::find(found->second.begin(), found->second.end(), &message);
    if (at != found->second.end()) found->second.erase(at);
    if (found->second.empty()) channels_.erase(found);
  }

 private:
  using Channel = std::pair<Op, int>;  ///< direction and tag
  Channel channel_of(const Call& message) const { return {message.op, by_tag_ ? message.tag : 0}; }

  bool by_tag_;
  std::map<Channel, std::deque<Operation*>> channels_;
};

}  // namespace medley::core
