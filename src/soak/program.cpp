#include "soak/program.hpp"

#include <algorithm>
#include <cstring>

#include "base/random.hpp"
#include "compress/spec.hpp"
#include "soak/values.hpp"

namespace medley::soak {
namespace {

void add(std::vector<Interval>& list, std::int64_t at, std::int64_t elements, DType dtype, bool write) {
  if (elements > 0) list.push_back({at, at + elements * static_cast<std::int64_t>(size_of(dtype)), write});
}

void add_side(std::vector<Interval>& list, const Side& side, DType dtype, bool write) {
  if (side.counts.empty()) return add(list, side.at, side.count, dtype, write);
  const auto element = static_cast<std::int64_t>(size_of(dtype));
  for (std::size_t r = 0; r < side.counts.size(); ++r) {
    add(list, side.at + side.offsets[r] * element, side.counts[r], dtype, write);
  }
}

}  // namespace

bool conflict(const std::vector<Interval>& a, const std::vector<Interval>& b) {
  return std::any_of(a.begin(), a.end(), [&](const Interval& x) {
    return std::any_of(b.begin(), b.end(),
                       [&](const Interval& y) { return (x.write || y.write) && x.begin < y.end && y.begin < x.end; });
  });
}

int rank_in(const CommPlan& comm, int world_rank) {
  const auto place = std::find(comm.members.begin(), comm.members.end(), world_rank);
  return place == comm.members.end() ? -1 : static_cast<int>(place - comm.members.begin());
}

bool is_comm_maker(Kind kind) { return kind == Kind::split || kind == Kind::subset || kind == Kind::dup; }

bool takes_part(const Program& program, const Step& step, int world_rank) {
  if (step.kind == Kind::touch) return step.rank == world_rank;
  const int me = rank_in(program.comm(step.comm), world_rank);
  if (me < 0 || (step.kind != Kind::messages && step.kind != Kind::any_source)) return me >= 0;
  return std::any_of(step.packets.begin(), step.packets.end(),
                     [&](const Packet& p) { return p.from == me || p.to == me; });
}

std::vector<Interval> accesses(const Program& program, const Step& step, int world_rank, int packet) {
  std::vector<Interval> list;
  if (step.kind == Kind::touch) return {{step.at, step.at + step.bytes, true}};
  const int me = rank_in(program.comm(step.comm), world_rank);
  if (step.kind == Kind::collective) {
    add_side(list, step.shares[static_cast<std::size_t>(me)].in, step.dtype, false);
    add_side(list, step.shares[static_cast<std::size_t>(me)].out, step.dtype, true);
  }
  for (std::size_t i = 0; i < step.packets.size(); ++i) {
    const Packet& p = step.packets[i];
    if (packet >= 0 && static_cast<int>(i) != packet) continue;
    if (p.from == me) add(list, p.from_at, p.count, step.dtype, false);
    if (p.to == me) add(list, p.to_at, p.room, step.dtype, true);
  }
  return list;
}

Side tensor_of(const Side& side, DType dtype, int tensor, int tensors) {
  const std::int64_t begin = side.count * tensor / tensors, end = side.count * (tensor + 1) / tensors;
  return {.at = side.at + begin * static_cast<std::int64_t>(size_of(dtype)), .count = end - begin};
}

std::vector<std::vector<Interval>> operations(const Program& program, const Step& step, int world_rank) {
  std::vector<std::vector<Interval>> list;
  const int me = rank_in(program.comm(step.comm), world_rank);
  for (const Packet& p : step.packets) {
    if (p.from == me) add(list.emplace_back(), p.from_at, p.count, step.dtype, false);
    if (p.to == me) add(list.emplace_back(), p.to_at, p.room, step.dtype, true);
  }
  for (int t = 0; t < step.tensors; ++t) {
    const Share& share = step.shares[static_cast<std::size_t>(me)];
    add_side(list.emplace_back(), tensor_of(share.in, step.dtype, t, step.tensors), step.dtype, false);
    add_side(list.back(), tensor_of(share.out, step.dtype, t, step.tensors), step.dtype, true);
  }
  if (list.empty()) list.push_back(accesses(program, step, world_rank));
  return list;
}

bool rounds(const Step& step) {
  return step.kind == Kind::collective && compress::is_compressed(step.algorithm) &&
         compress::parse_spec(step.algorithm.substr(1)).lossy();
}

bool collects(const Program& program, const Step& step, int world_rank) {
  if (rounds(step)) return true;
  return step.kind == Kind::any_source && rank_in(program.comm(step.comm), world_rank) == step.packets.front().to;
}

std::vector<std::byte> initial_memory(const Program& program, int world_rank) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(program.memory));
  core::Random random(core::mix(program.seed) + static_cast<std::uint64_t>(world_rank));
  // All ranks have the same type at the same offset.
  const std::int64_t slab = std::max<std::int64_t>(program.memory / 4 / 8 * 8, 8);
  for (std::int64_t at = 0; at < program.memory; at += 8) {
    const auto which = static_cast<std::size_t>(at / slab) % program.palette.size();
    fill_word(bytes.data() + at, program.palette[which], random.bits());
  }
  return bytes;
}

void write_touch(const Program& program, int step, std::byte* to) {
  const Step& s = program.step(step);
  core::Random random(program.seed * 31 + static_cast<std::uint64_t>(step));
  std::byte word[8];
  for (std::int64_t i = 0; i < s.bytes; ++i) {
    if (i % 8 == 0) fill_word(word, s.dtype, random.bits());
    to[i] = word[i % 8];
  }
}

}  // namespace medley::soak
