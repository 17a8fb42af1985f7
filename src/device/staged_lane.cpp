#include "device/staged_lane.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <utility>

#include "compress/spec.hpp"
#include "device/staged_plan.hpp"

namespace medley::core {
namespace {

constexpr std::size_t pieces_at_once = 3;  // one being copied in, one in the host operation, one being copied out
constexpr auto copy_grace = std::chrono::seconds(1);

}  // namespace

/// A piece with its pinned block, which returns to the pool when neither the host operation nor a copy can use it any
/// more.
struct StagedLane::PinnedPiece {
  PinnedPiece(std::shared_ptr<Device> of, const StagedPlan& plan, std::int64_t index)
      : device(std::move(of)),
        bytes(static_cast<std::size_t>(plan.room())),
        memory(static_cast<std::byte*>(device->pinned(bytes))),
        piece(plan.piece(index, memory)) {}
  ~PinnedPiece() {
    if (!lost) device->release_pinned(memory, bytes);
  }
  PinnedPiece(const PinnedPiece&) = delete;
  PinnedPiece& operator=(const PinnedPiece&) = delete;

  std::shared_ptr<Device> device;
  std::size_t bytes;
  std::byte* memory;
  Piece piece;
  bool lost = false;  ///< a copy did not complete: the block is leaked, since the device may still use it
};

/// One operation staged through pinned memory.
class StagedTransfer final : public Transfer {
 public:
  StagedTransfer(StagedLane& lane, const Call& call)
      : lane_(lane), device_(*lane.device_), call_(call), plan_(call, lane.rank_, lane.ranks_) {
    lane_.running_.push_back(this);
  }
  Poll poll() override;
  std::vector<int> awaited() const override;
  int source() const override { return source_; }
  bool launched() override { return all_begun() && waiting_to_start_ == 0; }
  bool order(void* stream) override;
  void release() noexcept override { delete this; }
  void abandon(std::shared_ptr<const void> memory) noexcept override {
    const auto until_gone = std::move(memory);  // each piece has its own lists
    delete this;
  }
  /// Moves the active pieces to the lane.
  void give_up_pieces() noexcept;

 private:
  enum class State : std::uint8_t { copying_in, running, copying_out };
  struct Active {
    std::shared_ptr<StagedLane::PinnedPiece> pinned;
    void* event = nullptr;  ///< of the pending copies
    Transfer* transfer = nullptr;
    State state = State::copying_in;

    Piece& piece() const { return pinned->piece; }
    std::byte* memory() const { return pinned->memory; }
  };
  ~StagedTransfer() override;
  bool all_begun() const { return begun_ == plan_.pieces() && header_known(); }
  bool header_known() const { return !plan_.is_receive() || header_seen_; }
  void begin_next();
  bool advance(std::size_t index);
  bool start_inner(std::size_t index);
  void copy_out(Active& active);
  void learn_header(const Active& active);

  StagedLane& lane_;
  Device& device_;
  Call call_;
  StagedPlan plan_;
  bool ready_ = false;
  bool header_seen_ = false;
  bool too_long_ = false;
  std::int64_t begun_ = 0;
  int waiting_to_start_ = 0;  ///< active pieces whose inner operation has not started
  int source_ = -1;
  void* last_out_ = nullptr;   ///< the event of the last copy to the device
  std::deque<Active> active_;  ///< in order
};

void StagedTransfer::begin_next() {
  Active& active =
      active_.emplace_back(Active{.pinned = std::make_shared<StagedLane::PinnedPiece>(lane_.device_, plan_, begun_)});
  ++begun_;
  ++waiting_to_start_;
  for (const Copy& copy : active.piece().in) {
    device_.copy(active.memory() + copy.at, copy.user, static_cast<std::size_t>(copy.bytes), lane_.to_host_);
  }
  if (!active.piece().in.empty()) active.event = device_.record(lane_.to_host_);
}

/// Inner operations start in the same order on all ranks; false if an earlier one has not started yet.
bool StagedTransfer::start_inner(std::size_t index) {
  if (index > 0 && active_[index - 1].state == State::copying_in) return false;
  const bool alone = call_.op != Op::send && call_.op != Op::recv && !lane_.inner_->concurrent_collectives();
  if (alone && index > 0 && active_[index - 1].state == State::running) return false;
  Active& active = active_[index];
  if (active.event && !device_.completed(active.event)) return false;
  if (active.event) device_.release_event(std::exchange(active.event, nullptr));
  active.transfer = lane_.inner_->start(active.piece().call);
  active.state = State::running;
  --waiting_to_start_;
  if (!active.transfer) copy_out(active);
  return true;
}

void StagedTransfer::learn_header(const Active& active) {
  MessageHeader header{};
  std::memcpy(&header, active.memory(), sizeof header);
  source_ = active.transfer ? active.transfer->source() : call_.root;
  header_seen_ = true;
  // A message that does not fit is received all the same; otherwise the next receive would get its rest.
  too_long_ = !plan_.learn(header, source_);
}

void StagedTransfer::copy_out(Active& active) {
  if (plan_.is_receive() && !header_seen_) {
    learn_header(active);
    // The first piece assumes the whole receive buffer; the message may be shorter.
    const std::int64_t came = std::min(plan_.message_bytes(), piece_bytes);
    std::erase_if(active.piece().out,
                  [&](Copy& copy) { return too_long_ || (copy.bytes = std::min(copy.bytes, came)) == 0; });
  }
  if (active.transfer) std::exchange(active.transfer, nullptr)->release();
  for (const Copy& copy : active.piece().out) {
    device_.copy(copy.user, active.memory() + copy.at, static_cast<std::size_t>(copy.bytes), lane_.to_device_);
  }
  active.state = State::copying_out;
  if (active.piece().out.empty()) return;
  active.event = device_.record(lane_.to_device_);
  last_out_ = active.event;
}

/// True if the piece made progress.
bool StagedTransfer::advance(std::size_t index) {
  Active& active = active_[index];
  if (active.state == State::copying_in) return start_inner(index);
  if (active.state != State::running) return false;
  const Poll seen = active.transfer->poll();
  if (seen == Poll::complete) copy_out(active);
  return seen != Poll::waiting;
}

Poll StagedTransfer::poll() {
  if (!ready_) {
    // Polled, not waited for in the copy streams, where it would delay all other copies.
    if (call_.dependencies && !device_.completed(call_.dependencies->ready)) return Poll::waiting;
    ready_ = true;
  }
  bool moved = false;
  while (begun_ < plan_.pieces() && (begun_ == 0 || header_known()) && active_.size() < pieces_at_once) {
    begin_next();
    moved = true;
  }
  for (std::size_t i = 0; i < active_.size(); ++i) moved = advance(i) || moved;
  while (!active_.empty() && active_.front().state == State::copying_out) {
    Active& first = active_.front();
    if (first.event && !device_.completed(first.event)) break;
    if (first.event == last_out_) last_out_ = nullptr;
    if (first.event) device_.release_event(first.event);
    active_.pop_front();
    moved = true;
  }
  if (!active_.empty() || !all_begun()) return moved ? Poll::moved : Poll::waiting;
  if (too_long_) {
    throw Error(ErrorKind::mismatch,
                fmt::format("rank {} sent a message of {} bytes to a receive of {}", source_, plan_.message_bytes(),
                            call_.out_count * static_cast<std::int64_t>(size_of(call_.dtype))),
                {.ranks = {source_}});
  }
  return Poll::complete;
}

bool StagedTransfer::order(void* stream) {
  if (!all_begun() || too_long_) return false;
  const bool out =
      std::all_of(active_.begin(), active_.end(), [](const Active& a) { return a.state == State::copying_out; });
  if (out && last_out_) device_.wait(stream, last_out_);
  return out;
}

std::vector<int> StagedTransfer::awaited() const {
  for (const Active& active : active_) {
    if (active.transfer) return active.transfer->awaited();
  }
  return {};
}

void StagedTransfer::give_up_pieces() noexcept {
  for (Active& active : active_) lane_.orphans_.push_back({active.transfer, active.event, std::move(active.pinned)});
  active_.clear();
}

StagedTransfer::~StagedTransfer() {
  give_up_pieces();
  std::erase(lane_.running_, this);
}

/// Where the device has kernels for the codec, only compressed bytes are staged. All ranks see the same frames either
/// way.
bool StagedLane::compresses_on_device(const Call& call) const {
  return compress::is_compressed(call.algorithm) && is_collective(call.op) && !call.list && ranks_ > 1 &&
         algorithms::DeviceFrames::has_kernels(*device_, call);
}

Transfer* StagedLane::start(const Call& call) {
  if (compresses_on_device(call)) [[unlikely]] {
    if (!frames_) frames_ = std::make_shared<algorithms::DeviceFrames>(device_);
    return inner_->start_on_device(call, frames_);
  }
  if (!to_host_) {
    to_host_ = device_->make_stream();
    to_device_ = device_->make_stream();
  }
  auto* transfer = new StagedTransfer(*this, call);
  try {
    if (transfer->poll() != Poll::complete || call.op == Op::recv) return transfer;  // the first copies start at once
  } catch (...) {
    transfer->release();
    throw;
  }
  transfer->release();
  return nullptr;
}

/// For an aborted lane: false while a copy is pending, which completes on its own; the host operation keeps the piece
/// as long as its library may use it.
bool StagedLane::give_up(Orphan& orphan) noexcept {
  Device& device = *device_;
  try {
    if (orphan.event && !orphan.piece->lost && !device.completed(orphan.event)) {
      if (std::chrono::steady_clock::now() < copy_limit_) return false;
      orphan.piece->lost = true;  // the device is broken
    }
    if (orphan.event && !orphan.piece->lost) device.release_event(orphan.event);
  } catch (const Error&) {
    orphan.piece->lost = true;  // CUDA itself failed
  }
  if (orphan.transfer) orphan.transfer->abandon(std::move(orphan.piece));
  return true;
}

bool StagedLane::abandon_orphans() noexcept {
  std::erase_if(orphans_, [this](Orphan& orphan) { return give_up(orphan); });
  return orphans_.empty();
}

void StagedLane::abort(const Error& why) noexcept {
  copy_limit_ = std::chrono::steady_clock::now() + copy_grace;
  inner_->abort(why);
}

bool StagedLane::poll_abort() noexcept {
  if (!inner_->poll_abort()) return false;
  // Kernels may use the tensors
  if (frames_ && !frames_->idle() && std::chrono::steady_clock::now() < copy_limit_) return false;
  for (StagedTransfer* transfer : running_) transfer->give_up_pieces();
  return abandon_orphans();
}

bool StagedLane::poll_close() noexcept {
  if (!orphans_.empty() && !closing_) abort(Error(ErrorKind::aborted, "its comm was closed"));
  closing_ = true;
  return (orphans_.empty() || poll_abort()) && inner_->poll_close();
}

StagedLane::~StagedLane() {
  while (!abandon_orphans()) sched_yield();  // none is left once poll_close() returned true
}

}  // namespace medley::core
