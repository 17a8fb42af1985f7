#include "model/layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <medley/error.hpp>

namespace medley::model {
namespace {

[[noreturn]] void refuse(const std::string& sentence) { throw Error(ErrorKind::invalid, "layout: " + sentence); }

void must_divide(std::string_view what, Count value, std::string_view by, Count divisor) {
  if (value % divisor != 0) refuse(fmt::format("{} {} is not divisible by {} {}", what, value, by, divisor));
}

void check_sizes(const Layout& l) {
  constexpr int most = 1 << 20;
  for (const auto& [key, value] : {std::pair<const char*, Count>{"dp", l.dp},
                                   {"tp", l.tp},
                                   {"pp", l.pp},
                                   {"cp", l.cp},
                                   {"ep", l.ep},
                                   {"etp", l.expert_tensor()},
                                   {"vp", l.virtual_stages},
                                   {"hsdp", l.hsdp}}) {
    if (value < 1 || value > most) refuse(fmt::format("{} is {}; it must lie between 1 and {}", key, value, most));
  }
  product({l.dp, l.tp, l.pp, l.cp}, "world size");
  if (l.zero < 0 || l.zero > 3) refuse(fmt::format("zero is {}; stages are 0 to 3", l.zero));
  if (l.micro_batch < 1) refuse(fmt::format("micro-batch is {}; it must be at least 1", l.micro_batch));
  if (l.global_batch < 0) refuse(fmt::format("global-batch is {}; it must be at least 1", l.global_batch));
  if (!(l.flags.capacity_factor > 0) || l.flags.capacity_factor > 1e6) refuse("capacity_factor must be above 0");
}

}  // namespace

Count Layout::micro_batches() const noexcept { return global_batch / (micro_batch * dp); }

Coordinates coordinates(const Layout& l, Count rank) {
  if (rank < 0 || rank >= l.world()) {
    throw Error(ErrorKind::invalid, fmt::format("rank {} is outside the world of {}", rank, l.world()));
  }
  Coordinates at;
  at.tp = static_cast<int>(rank % l.tp);
  rank /= l.tp;
  at.cp = static_cast<int>(rank % l.cp);
  rank /= l.cp;
  at.dp = static_cast<int>(rank % l.dp);
  at.pp = static_cast<int>(rank / l.dp);
  return at;
}

Count rank_of(const Layout& l, const Coordinates& at) {
  return ((Count{at.pp} * l.dp + at.dp) * l.cp + at.cp) * l.tp + at.tp;
}

void derive_dp(Layout& l) {
  if (l.ranks == 0) return;
  const Count replica = product({l.tp, l.pp, l.cp}, "tp·pp·cp");
  if (l.ranks % replica != 0) refuse(fmt::format("world {} is not a multiple of tp·pp·cp = {}", l.ranks, replica));
  const Count dp = l.ranks / replica;
  if (l.dp_given && l.dp != dp)
    refuse(fmt::format("world {} contradicts dp {} times tp·pp·cp = {}", l.ranks, l.dp, replica));
  l.dp = static_cast<int>(dp);
}

void check(Layout& l, const Model& m) {
  check_sizes(l);
  derive_dp(l);
  if (l.seq == 0) l.seq = m.seq;
  if (l.seq < 1) refuse(fmt::format("seq is {}; it must be at least 1", l.seq));
  const Count per_round = product({l.micro_batch, l.dp}, "micro-batch times dp");
  if (l.global_batch == 0) l.global_batch = product({per_round, std::max<Count>(1, l.accumulation)}, "global-batch");
  if (l.global_batch % per_round != 0) {
    refuse(fmt::format("global-batch {} is not divisible by micro-batch {} times dp {}", l.global_batch, l.micro_batch,
                       l.dp));
  }
  must_divide("number of attention heads", m.heads, "tp", l.tp);
  if (l.tp % m.kv_heads != 0) must_divide("number of key-value heads", m.kv_heads, "tp", l.tp);
  if (l.sp && l.tp == 1) refuse("sp=on needs tp above 1: it splits the sequence over the tensor group");
  if (l.mode == Mode::decode && l.sp) refuse("sp=on splits sequences; decoding has one token of each");
  must_divide("sequence", l.seq, l.sp ? "tp times cp" : "cp", Count{l.sp ? l.tp : 1} * l.cp);
  if (l.cp > 1 && l.mode == Mode::train && l.context == ContextKind::ring)
    must_divide("sequence", l.seq, "2·cp (zigzag halves)", 2 * Count{l.cp});
  if (l.cp > 1 && l.context == ContextKind::ulysses) {
    must_divide("heads per tensor rank", m.heads / l.tp, "cp", l.cp);
  }
  // With virtual stages the embedding and the head may each count as a layer.
  if (m.layers + (l.virtual_stages > 1 ? 2 : 0) < Count{l.pp} * l.virtual_stages) {
    refuse(fmt::format("{} layers cannot fill pp {} times vp {} stages", m.layers, l.pp, l.virtual_stages));
  }
  if (l.pipeline == PipelineKind::interleaved && l.virtual_stages == 1)
    refuse("an interleaved pipeline needs vp above 1");
  if (l.virtual_stages > 1) {
    if (l.pp == 1) refuse("vp above 1 needs pp above 1");
    l.pipeline = PipelineKind::interleaved;
    must_divide("number of micro-batches", l.micro_batches(), "pp (interleaved schedule)", l.pp);
  }
  if (l.ep > 1) {
    if (!m.moe()) refuse(fmt::format("ep is {} but {} has no experts", l.ep, m.name));
    must_divide("number of experts", m.experts, "ep", l.ep);
    if (l.expert_tensor() == l.tp) must_divide("dp times cp", Count{l.dp} * l.cp, "ep", l.ep);
  }
  if (l.expert_tensor() != l.tp) {
    if (!m.moe()) refuse(fmt::format("etp is {} but {} has no experts", l.etp, m.name));
    must_divide("dp times cp times tp", product({l.dp, l.cp, l.tp}), "etp times ep", product({l.etp, l.ep}));
  }
  must_divide("dp", l.dp, "hsdp", l.hsdp);
}

}  // namespace medley::model
