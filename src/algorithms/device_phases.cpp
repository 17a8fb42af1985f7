#include "algorithms/device_phases.hpp"

#include <algorithm>

namespace medley::algorithms {

Poll DevicePhases::poll() {
  const Poll seen = step(task_);
  if (last_ && !chained_ && at_ && at_->in_streams() && running_.launched()) {
    // The next collective of the lane begins behind this point, whichever library carries its first phase.
    running_.order(stream_);
    chained_ = true;
  }
  return seen;
}

/// A last phase that the host stages launches nothing in a stream.
bool DevicePhases::launched() { return last_ && (chained_ || !at_ || !at_->in_streams()); }

bool DevicePhases::order(void* stream) { return last_ && running_.order(stream); }

DevicePhases::~DevicePhases() {
  for (void* memory : scratch_) device_->free_in(memory, stream_);
  if (ready_) device_->release_event(ready_);
}

std::byte* DevicePhases::scratch(std::int64_t count) {
  return static_cast<std::byte*>(scratch_.emplace_back(device_->allocate_in(bytes(count), stream_)));
}

void DevicePhases::prepare() {
  if (call_.dependencies) {
    device_->wait(stream_, call_.dependencies->ready);
    for (Transfer* earlier : call_.dependencies->transfers) earlier->order(stream_);
    call_.dependencies = nullptr;
  }
  ready_ = device_->record(stream_);
}

void DevicePhases::start_after(Lane& lane) {
  earlier_ = running_.list();  // launched, and perhaps still running
  dependencies_ = {.ready = ready_, .transfers = earlier_};
  part_.dependencies = &dependencies_;
  start_phase(lane);
}

Task DevicePhases::run() {
  const bool phased = call_.op == Op::all_reduce || call_.op == Op::reduce_scatter || call_.op == Op::all_gather ||
                      call_.op == Op::broadcast || call_.op == Op::all_to_all;
  if (!phased || call_.list) {
    co_await over_all();
  } else if (std::max(call_.in_count, call_.out_count) == 0) {
    last_ = true;  // nothing to move, on all ranks alike
  } else {
    switch (call_.op) {
      case Op::all_reduce: co_await all_reduce(); break;
      case Op::reduce_scatter: co_await reduce_scatter(); break;
      case Op::all_gather: co_await all_gather(); break;
      case Op::broadcast: co_await broadcast(); break;
      default: co_await all_to_all(); break;
    }
  }
}

/// Everything else, and fused tensors, which are small: over the second library among all ranks.
Task DevicePhases::over_all() {
  prepare();
  part_ = call_;
  part_.algorithm = {};
  co_await over(*lanes().all, nullptr);
}

/// Equal slices take the library's own calls; others take one message or reduction for each slice.
void DevicePhases::reduce_slices(std::int64_t count) {
  if (count % places() == 0) {
    phase(Op::reduce_scatter, in(), count, out(own_offset()), own_count());
    return;
  }
  Call& scatter = phase(Op::reduce_scatterv, in(), count, out(own_offset()), own_count());
  scatter.in_counts = counts_.data();
  scatter.in_offsets = offsets_.data();
}

void DevicePhases::gather_slices_of(std::byte* whole, std::int64_t count) {
  if (count % places() != 0) return gather_slices(whole, count);
  phase(Op::all_gather, whole + bytes(own_offset()), own_count(), whole, count);
}

Task DevicePhases::all_reduce() {
  const std::int64_t count = call_.out_count;
  prepare();
  slice(count);
  reduce_slices(count);
  co_await inside(own_count() > 0 ? lanes().between.get() : lanes().inside.get());
  if (own_count() > 0) {
    phase(Op::all_reduce, out(own_offset()), own_count(), out(own_offset()), own_count());
    co_await between(lanes().inside.get());
  }
  gather_slices_of(out(), count);
  co_await inside(nullptr);
}

void DevicePhases::list_by_host(Op op, const std::byte* from, std::int64_t in_parts, std::byte* to,
                                std::int64_t out_parts, std::int64_t part) {
  tensors_.clear();
  for (int h = 0; h < hosts(); ++h)
    tensors_.push_back({from + bytes(h * in_parts * part), to + bytes(h * out_parts * part), part});
  list_.tensors = tensors_;
  phase(op, nullptr, hosts() * in_parts * part, nullptr, hosts() * out_parts * part).list = &list_;
}

/// For each host the parts of its ranks are reduced here, each by the rank with that local index; then with its
/// counterparts.
Task DevicePhases::reduce_scatter() {
  const std::int64_t part = call_.out_count;
  std::byte* const reduced = scratch(part * hosts());
  prepare();
  list_by_host(Op::reduce_scatter, in(), places(), reduced, 1, part);
  co_await inside(lanes().between.get());
  phase(Op::reduce_scatter, reduced, part * hosts(), out(), part);
  co_await between(nullptr);
}

Task DevicePhases::all_gather() {
  const std::int64_t part = call_.in_count;
  std::byte* const column = scratch(part * hosts());
  prepare();
  phase(Op::all_gather, in(), part, column, part * hosts());
  co_await between(lanes().inside.get());
  list_by_host(Op::all_gather, column, 1, out(), places(), part);
  co_await inside(nullptr);
}

/// As on host memory: the root's host scatters slices, each goes to the other hosts, and every host gathers them.
Task DevicePhases::broadcast() {
  const int root_host = call_.root / places(), root_place = call_.root % places();
  const bool at_root_host = host() == root_host, root = at_root_host && place() == root_place;
  const std::int64_t count = root ? call_.in_count : call_.out_count;
  prepare();
  slice(count);
  Lane* const second = own_count() > 0 ? lanes().between.get() : lanes().inside.get();
  if (at_root_host) {
    scatter_slices(count, root_place);
    co_await inside(second);
  }
  if (own_count() > 0) {
    const std::byte* own = root ? in(own_offset()) : out(own_offset());
    phase(Op::broadcast, at_root_host ? own : nullptr, at_root_host ? own_count() : 0,
          at_root_host ? nullptr : out(own_offset()), at_root_host ? 0 : own_count(), root_host);
    co_await between(lanes().inside.get());
  }
  if (at_root_host) {
    phase(Op::broadcast, root ? call_.in : nullptr, root ? count : 0, root ? nullptr : call_.out, root ? 0 : count,
          root_place);
  } else {
    gather_slices_of(out(), count);
  }
  co_await inside(nullptr);
}

/// Inside the host, each rank collects what is for its local index on every host; then it sends each host its block,
/// which arrives in order.
Task DevicePhases::all_to_all() {
  const std::int64_t part = call_.in_count / (hosts() * places()), whole = call_.in_count;
  std::byte* const met = scratch(whole);
  prepare();
  list_by_host(Op::all_to_all, in(), places(), met, places(), part);
  co_await inside(lanes().between.get());
  phase(Op::all_to_all, met, whole, out(), whole);
  co_await between(nullptr);
}

}  // namespace medley::algorithms
