// One operation of each kind, for tests that lose a rank in the middle of it.
#pragma once

#include <medley/medley.hpp>
#include <span>
#include <vector>

namespace medley::test {

enum class Way { all_reduce, broadcast, all_to_all, reduce_scatter, gather, barrier, messages, two_shots };
inline constexpr const char* way_names[] = {"AllReduce", "Broadcast", "AllToAll", "ReduceScatter",
                                            "Gather",    "Barrier",   "Messages", "TwoShots"};

/// The victim has a leading role in it; started without waiting.
inline std::vector<Work> start(Comm& comm, Way way, int victim, std::vector<float>& in, std::vector<float>& out) {
  const int me = comm.rank(), n = comm.size();
  const std::size_t part = in.size() / static_cast<std::size_t>(n);
  const Options later{.async = true};
  switch (way) {
    case Way::all_reduce: return {comm.all_reduce(in, out, sum, later)};
    case Way::broadcast: return {comm.broadcast(in, victim, later)};
    case Way::two_shots: return {comm.broadcast(in, victim, {.async = true, .algorithm = "two_shot_segment"})};
    case Way::all_to_all: return {comm.all_to_all(in, out, later)};
    case Way::reduce_scatter: return {comm.reduce_scatter(in, std::span(out).first(part), sum, later)};
    case Way::gather: return {comm.gather(std::span(in).first(part), out, victim, later)};
    case Way::barrier: return {comm.barrier(later)};
    case Way::messages: break;
  }
  return {comm.recv(out, (me + n - 1) % n, later), comm.send(in, (me + 1) % n, later)};
}

}  // namespace medley::test
