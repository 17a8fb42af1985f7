// Gloo's TCP transport with one addition: every wait in it can be ended. Used by Mesh. Gloo alone cannot do that: when
// a connection fails it wakes the waits for data that has not begun to arrive, but leaves a wait whose data has (its
// buffer is off the list by then) until a timeout.
#pragma once

#include <gloo/transport/context.h>
#include <gloo/transport/device.h>
#include <gloo/transport/unbound_buffer.h>

#include <memory>
#include <mutex>
#include <unordered_set>

namespace medley::gloo_backend {

class EndableBuffer;

class EndableTransport final : public ::gloo::transport::Context {
 public:
  EndableTransport(::gloo::transport::Device& device, int own, int ranks);

  std::unique_ptr<::gloo::transport::Pair>& getPair(int of) override { return tcp_->getPair(of); }
  std::unique_ptr<::gloo::transport::Pair>& createPair(int of) override;
  std::unique_ptr<::gloo::transport::UnboundBuffer> createUnboundBuffer(void* memory, std::size_t bytes) override;

  /// Ends every wait, now and later, with an exception, and closes every connection: afterwards Gloo touches no memory.
  void sever() noexcept;

 private:
  friend class EndableBuffer;
  std::shared_ptr<::gloo::transport::Context> tcp_;
  std::mutex mutex_;
  bool severed_ = false;
  std::unordered_set<EndableBuffer*> buffers_;
};

}  // namespace medley::gloo_backend
