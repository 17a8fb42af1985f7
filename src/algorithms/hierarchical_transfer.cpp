#include "algorithms/hierarchical_transfer.hpp"

#include <algorithm>
#include <cstring>

namespace medley::algorithms {
namespace {

// Parts of an all_to_all from this size on go directly to their ranks: copying them three times to send fewer messages
// costs more than the messages. Between two hosts of two ranks (mpi and ucx, two cores) direct ones took 0.6 of the
// time at 4 KiB and at 256 KiB. With more ranks a host each message that is saved saves more; that was not measured.
constexpr std::size_t direct_part_bytes(int ranks_per_host) { return ranks_per_host == 2 ? 4 << 10 : 16 << 10; }

}  // namespace

/// Each local rank reduces a slice inside its host, then with its counterparts on the other hosts; then the host
/// all-gathers.
Task HierarchicalTransfer::all_reduce() {
  const std::int64_t count = call_.out_count;
  slice(count, skew_);
  Call& scatter = phase(Op::reduce_scatterv, in(), count, out(own_offset()), own_count());
  scatter.in_counts = counts_.data();
  scatter.in_offsets = offsets_.data();
  co_await entering();
  if (own_count() > 0) {
    phase(Op::all_reduce, out(own_offset()), own_count(), out(own_offset()), own_count());
    co_await between();
  } else {
    pass(Stage::between);
  }
  gather_slices(out(), count);
  co_await leaving();
}

/// Copies parts from [host][place] to [place][host] order.
void HierarchicalTransfer::by_place(std::byte* to, const std::byte* from, std::int64_t part) const {
  for (int h = 0; h < hosts(); ++h) {
    for (int p = 0; p < places(); ++p) {
      std::memcpy(to + bytes(part * (p * hosts() + h)), from + bytes(part * (h * places() + p)), bytes(part));
    }
  }
}
void HierarchicalTransfer::by_host(std::byte* to, const std::byte* from, std::int64_t part) const {
  for (int p = 0; p < places(); ++p) {
    for (int h = 0; h < hosts(); ++h) {
      std::memcpy(to + bytes(part * (h * places() + p)), from + bytes(part * (p * hosts() + h)), bytes(part));
    }
  }
}

Task HierarchicalTransfer::reduce_scatter() {
  const std::int64_t part = call_.out_count, whole = call_.in_count;
  if (part == 0) co_return;
  pass(Stage::leave);
  co_await turn(Stage::enter);
  std::byte* packed = room(first_, whole);
  std::byte* parts = room(second_, part * hosts());
  by_place(packed, in(), part);
  phase(Op::reduce_scatter, packed, whole, parts, part * hosts());
  co_await entering();
  first_ = Scratch();
  phase(Op::reduce_scatter, parts, part * hosts(), out(), part);
  co_await between();
}

Task HierarchicalTransfer::all_gather() {
  const std::int64_t part = call_.in_count, whole = call_.out_count;
  if (part == 0) co_return;
  pass(Stage::enter);
  co_await turn(Stage::between);
  std::byte* column = room(first_, part * hosts());
  phase(Op::all_gather, in(), part, column, part * hosts());
  co_await between();
  co_await turn(Stage::leave);
  std::byte* packed = room(second_, whole);
  phase(Op::all_gather, column, part * hosts(), packed, whole);
  co_await leaving();
  by_host(out(), packed, part);
}

/// The root's host scatters parts among its local ranks, each slice goes to the other hosts, and every host gathers
/// them; the root's own host gets the tensor directly from the root.
Task HierarchicalTransfer::broadcast() {
  const int root_host = call_.root / places(), root_place = call_.root % places();
  const bool at_root_host = host() == root_host, root = at_root_host && place() == root_place;
  const std::int64_t count = root ? call_.in_count : call_.out_count;
  slice(count, skew_);
  const std::byte* own = root ? in(own_offset()) : out(own_offset());
  if (at_root_host) {
    scatter_slices(count, root_place);
    co_await entering();
  } else {
    pass(Stage::enter);
  }
  if (own_count() > 0) {
    phase(Op::broadcast, at_root_host ? own : nullptr, at_root_host ? own_count() : 0,
          at_root_host ? nullptr : out(own_offset()), at_root_host ? 0 : own_count(), root_host);
    // Over Medley's messages, which compare lengths: MPI's own broadcast does not notice that a host sends fewer
    // segments than another expects.
    part_.algorithm = choose(part_, hosts()).name;
    co_await between();
  } else {
    pass(Stage::between);
  }
  if (at_root_host) {
    phase(Op::broadcast, root ? call_.in : nullptr, root ? count : 0, root ? nullptr : call_.out, root ? 0 : count,
          root_place);
  } else {
    gather_slices(out(), count);
  }
  co_await leaving();
}

/// Parts for this host go inside it, those for other hosts directly to their ranks, at the same time. Neither waits for
/// the other. Whether a rank works in place is known to it alone, so it must not decide which phases there are: its
/// input is copied.
Task HierarchicalTransfer::direct_all_to_all(std::int64_t part) {
  pass(Stage::leave);
  const auto input = [&] {  // copied in its turn only, so that waiting exchanges hold no memory
    if (call_.in == call_.out && !first_.data())
      std::memcpy(room(first_, call_.in_count), call_.in, bytes(call_.in_count));
    return first_.data() ? first_.data() : in();
  };
  counts_.assign(static_cast<std::size_t>(hosts() * places()), part);
  for (int r = 0; r < hosts() * places(); ++r) {
    if (r / places() == host()) counts_[static_cast<std::size_t>(r)] = 0;
    offsets_.push_back(part * r);
  }
  bool local_started = false, remote_started = false;
  co_await until([&] {
    if (!remote_started && may_start(Stage::between)) {
      Call& remote = phase(Op::all_to_allv, input(), call_.in_count, call_.out, call_.out_count);
      remote.in_counts = remote.out_counts = counts_.data();
      remote.in_offsets = remote.out_offsets = offsets_.data();
      start_phase(*lanes().all);
      if (lanes().all->concurrent_collectives()) pass(Stage::between);
      remote_started = moved_ = true;
    }
    if (!local_started && may_start(Stage::enter)) {
      const std::int64_t here = part * places() * host();
      phase(Op::all_to_all, input() + bytes(here), part * places(), out(here), part * places());
      local_phase_ = start_phase(*lanes().inside);
      at_ = lanes().all.get();  // of every other phase
      local_started = moved_ = true;
    }
    progress(*lanes().inside);
    progress(*lanes().all);
    running_.poll(moved_);
    const auto& left = running_.list();
    if (local_started && std::find(left.begin(), left.end(), local_phase_) == left.end())
      local_phase_ = nullptr, pass(Stage::enter);
    return local_started && remote_started && left.empty();
  });
}

Task HierarchicalTransfer::all_to_all() {
  const std::int64_t part = call_.in_count / (hosts() * places()), whole = call_.in_count;
  if (part == 0) co_return;
  if (bytes(part) >= direct_part_bytes(places())) {
    co_await direct_all_to_all(part);
    co_return;
  }
  pass(Stage::leave);
  co_await turn(Stage::enter);
  std::byte* packed = room(first_, whole);
  std::byte* met = room(second_, whole);
  by_place(packed, in(), part);
  phase(Op::all_to_all, packed, whole, met, whole);  // everything for my local index, from all of my host
  co_await entering();
  by_host(packed, met, part);
  phase(Op::all_to_all, packed, whole, out(), whole);
  co_await between();
}

}  // namespace medley::algorithms
