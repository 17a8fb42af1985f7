#include "device/stream_lane.hpp"

#include <medley/sdk/current_error.hpp>

#include "compress/spec.hpp"
#include "device/stream_compression.hpp"

namespace medley::core {
namespace {

constexpr auto kernel_grace = std::chrono::seconds(1);  // for kernels that run at an abort

}  // namespace

Transfer* StreamLane::start(const Call& call) {
  if (!compress::is_compressed(call.algorithm)) [[likely]]
    return inner_->start(call);
  if (ranks_ == 1 || call.list) {  // fused tensors travel as they are, in one launch
    Call alone = call;
    alone.algorithm = {};
    return inner_->start(alone);
  }
  if (!stream_) stream_ = device_->make_stream();
  auto* const made = new StreamCompression(*this, call);
  try {
    // Everything is launched, unless the library is busy with earlier launches
    if (made->poll() != Poll::complete) return made;
  } catch (...) {
    const Error error = current_error();
    made->release();
    throw error;
  }
  made->release();
  return nullptr;
}

void StreamLane::abort(const Error& why) noexcept {
  kernel_limit_ = std::chrono::steady_clock::now() + kernel_grace;
  inner_->abort(why);
}

/// Kernels behind the aborted collectives still run, and write tensors.
bool StreamLane::poll_abort() noexcept {
  if (!inner_->poll_abort()) return false;
  try {
    if (stream_ && !last_event_) last_event_ = device_->record(stream_);
    const bool over = !last_event_ || device_->completed(last_event_);
    if (!over && std::chrono::steady_clock::now() < kernel_limit_) return false;
    if (last_event_) device_->release_event(last_event_);
  } catch (const Error&) {
    // CUDA itself failed, and nothing runs any more.
  }
  last_event_ = nullptr;
  abandon_orphans();
  return true;
}

void StreamLane::abandon_orphans() noexcept {
  for (StreamCompression* orphan : std::exchange(orphans_, {})) orphan->abandon({});
}

bool StreamLane::poll_close() noexcept {
  if (!orphans_.empty() && !closing_) abort(Error(ErrorKind::aborted, "its comm was closed"));
  closing_ = true;
  return (orphans_.empty() || poll_abort()) && inner_->poll_close();
}

StreamLane::~StreamLane() { abandon_orphans(); }

}  // namespace medley::core
