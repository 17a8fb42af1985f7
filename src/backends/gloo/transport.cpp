#include "backends/gloo/transport.hpp"

#include <gloo/common/error.h>

#include <chrono>

namespace medley::gloo_backend {

using ::gloo::transport::UnboundBuffer;

class EndableBuffer final : public UnboundBuffer {
 public:
  EndableBuffer(EndableTransport& transport, std::unique_ptr<UnboundBuffer> inner)
      : UnboundBuffer(inner->ptr, inner->size), transport_(transport), inner_(std::move(inner)) {
    const std::lock_guard lock(transport_.mutex_);
    throw_if_severed();
    transport_.buffers_.insert(this);
  }
  ~EndableBuffer() override {
    const std::lock_guard lock(transport_.mutex_);
    transport_.buffers_.erase(this);
  }

  bool waitRecv(int* rank, std::chrono::milliseconds timeout) override {
    return inner_->waitRecv(rank, timeout) || false_unless_severed();
  }
  bool waitSend(int* rank, std::chrono::milliseconds timeout) override {
    return inner_->waitSend(rank, timeout) || false_unless_severed();
  }
  void abortWaitRecv() override { inner_->abortWaitRecv(); }
  void abortWaitSend() override { inner_->abortWaitSend(); }
  void send(int to, std::uint64_t slot, std::size_t offset, std::size_t bytes) override {
    inner_->send(to, slot, offset, bytes);
  }
  void recv(int from, std::uint64_t slot, std::size_t offset, std::size_t bytes) override {
    inner_->recv(from, slot, offset, bytes);
  }
  void recv(std::vector<int> from, std::uint64_t slot, std::size_t offset, std::size_t bytes) override {
    inner_->recv(std::move(from), slot, offset, bytes);
  }

 private:
  bool false_unless_severed() const {
    const std::lock_guard lock(transport_.mutex_);
    throw_if_severed();
    return false;
  }
  void throw_if_severed() const {
    if (transport_.severed_) throw ::gloo::IoException("the connections were closed");
  }
  EndableTransport& transport_;
  std::unique_ptr<UnboundBuffer> inner_;
};

EndableTransport::EndableTransport(::gloo::transport::Device& device, int own, int ranks)
    : Context(own, ranks), tcp_(device.createContext(own, ranks)) {}

std::unique_ptr<::gloo::transport::Pair>& EndableTransport::createPair(int of) {
  tcp_->setTimeout(getTimeout());
  return tcp_->createPair(of);
}

std::unique_ptr<UnboundBuffer> EndableTransport::createUnboundBuffer(void* memory, std::size_t bytes) {
  return std::make_unique<EndableBuffer>(*this, tcp_->createUnboundBuffer(memory, bytes));
}

void EndableTransport::sever() noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (severed_) return;
    severed_ = true;
  }
  try {
    // A wait that times out is Gloo's own way to fail and close every connection of a context.
    char nothing = 0;
    tcp_->createUnboundBuffer(&nothing, 1)->waitRecv(std::chrono::milliseconds(1));
  } catch (const std::exception&) {
  }
  const std::lock_guard lock(mutex_);
  for (EndableBuffer* buffer : buffers_) {
    buffer->abortWaitRecv();
    buffer->abortWaitSend();
  }
}

}  // namespace medley::gloo_backend
