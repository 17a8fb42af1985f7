// Random collectives: the operation, dtype, size and where each rank's buffers are.
#include <algorithm>
#include <numeric>

#include "algorithms/compressed.hpp"
#include "algorithms/registry.hpp"
#include "compress/codec.hpp"
#include "soak/builder.hpp"
#include "soak/values.hpp"

namespace medley::soak {
bool Builder::add_collective(Step& step, const Section& section) {
  step.kind = Kind::collective;
  step.op = static_cast<Op>(random_.between(static_cast<int>(Op::broadcast), op_count - 1));
  step.dtype = random_.chance(60) ? random_.one_of(program_.palette) : static_cast<DType>(random_.below(dtype_count));
  choose_route(step);
  if (step.comm == by_size_ && random_.chance(60)) {
    step.op = random_.one_of({Op::gatherv, Op::scatterv, Op::all_to_allv, Op::all_to_allv});
    step.backend.clear();
  }
  if (rooted(step.op)) step.root = random_.between(0, size_of_comm(step.comm) - 1);
  if (random_.chance(25)) step.algorithm = random_.one_of(algorithms::names(step.op));
  // Losslessly compressed: exact like everything else.
  const bool has_lossless =
      compress::why_unavailable(compress::Kind::lz4).empty() && compress::why_unavailable(compress::Kind::zstd).empty();
  if (has_lossless && step.op != Op::barrier && step.algorithm.empty() && random_.chance(10))
    step.algorithm = random_.one_of({"+lz4", "+zstd"});
  if (over_nccl(step)) step.algorithm.clear();  // our own algorithms run on host memory
  step.deterministic = reduces(step.op) && random_.chance(10);
  step.shares.resize(static_cast<std::size_t>(size_of_comm(step.comm)));
  if (is_v_collective(step.op)) {
    place_parts(step, section);
  } else if (step.op != Op::barrier) {
    place_collective(step, section);
  }
  if (reduces(step.op)) choose_reduction(step);
  if ((step.op == Op::all_reduce || step.op == Op::broadcast) && random_.chance(40)) {
    step.tensors = random_.between(1, 12);
    step.in_scope = random_.chance(50);
    step.algorithm.clear();  // the message may take another route than its tensors, which may lack it
  }
  choose_rounding(step);
  return true;
}

/// On CUDA memory, routes over two libraries carry it themselves and do not compress.
bool Builder::may_compress(const Step& step) const {
  if (options_.memory == Memory::cuda && step.backend.empty() && options_.over_two) return false;
  return !over_nccl(step) || algorithms::compresses_in_streams(step.op);
}

/// Lossy compression, where its result has a bound: of finite floats that are copied or summed.
void Builder::choose_rounding(Step& step) {
  const bool small_float = step.dtype == DType::f32 || step.dtype == DType::f16 || step.dtype == DType::bf16;
  const bool summed = !reduces(step.op) || step.reduce == sum || step.reduce == avg;
  if (!small_float || !summed || step.op == Op::barrier || is_v_collective(step.op) || step.tensors > 0 ||
      !step.algorithm.empty() || size_of_comm(step.comm) == 1 || !may_compress(step) || !random_.chance(80)) {
    return;
  }
  const auto largest = oracle_.largest_input(step);
  if (!largest || *largest > 1000) return;  // the sum of f16 must not overflow
  step.algorithm = random_.one_of({"+bf16", "+fp8_e4m3", "+fp8_e5m2", "+int8", "+int4"});
}

/// Where the current values have no exact result, the same bytes are reduced as integers, which always have
/// one.
void Builder::choose_reduction(Step& step) {
  static const std::vector<ReduceOp> all{sum, avg, product, min, max, band, bor, bxor};
  for (int i = 0; i < 4; ++i) {
    step.reduce = random_.one_of(all);
    if (reducible(step.dtype, step.reduce) && oracle_.exact(step)) return;
  }
  switch (size_of(step.dtype)) {
    case 8: step.dtype = DType::i64; break;
    case 4: step.dtype = DType::i32; break;
    case 2: step.dtype = DType::i16; break;
    default: step.dtype = random_.one_of({DType::i8, DType::u8});
  }
  step.reduce = random_.one_of({sum, product, min, max, band, bor, bxor});
}

void Builder::place_collective(Step& step, const Section& section) {
  const int n = size_of_comm(step.comm);
  const std::int64_t elements = (section.end - section.begin) / static_cast<std::int64_t>(size_of(step.dtype));
  // `part` is the smaller side; the larger side holds one part per rank.
  const bool one_to_one = step.op == Op::broadcast || step.op == Op::reduce || step.op == Op::all_reduce;
  const bool many_to_many = step.op == Op::all_to_all;
  const std::int64_t part = count_up_to(one_to_one ? elements / 2 : elements / (many_to_many ? 2 * n : n + 1));
  const auto element = static_cast<std::int64_t>(size_of(step.dtype));
  // Half of the time the same place on all ranks, as real programs do; it also makes floats of a slab meet
  // floats.
  const bool same_place = random_.chance(50);
  std::vector<std::int64_t> last_counts, last_at;
  const auto place = [&](const std::vector<std::int64_t>& counts) {
    if (!same_place || counts != last_counts) last_at = place_apart(counts, step.dtype, section);
    last_counts = counts;
    return last_at;
  };
  for (int r = 0; r < n; ++r) {
    Share& share = step.shares[static_cast<std::size_t>(r)];
    const bool root = r == step.root, has_root = rooted(step.op);
    const bool in_is_large = step.op == Op::scatter || step.op == Op::reduce_scatter || many_to_many;
    const bool out_is_large = step.op == Op::gather || step.op == Op::all_gather || many_to_many;
    const bool gives = !has_root || root || step.op == Op::reduce || step.op == Op::gather;
    const bool takes = !has_root || (step.op == Op::broadcast ? !root : root || step.op == Op::scatter);
    share.in.count = gives ? (in_is_large ? part * n : part) : 0;
    share.out.count = takes ? (out_is_large ? part * n : part) : 0;
    const bool in_place = gives && takes && random_.chance(25);
    if (in_place) {
      const auto at = place({std::max(share.in.count, share.out.count)})[0];
      share.in.at = at + (out_is_large && !in_is_large ? r * part * element : 0);
      share.out.at = at + (in_is_large && !out_is_large ? r * part * element : 0);
    } else {
      const auto at = place({share.in.count, share.out.count});
      share.in.at = at[0];
      share.out.at = at[1];
    }
  }
}

/// v-collectives: a table of how much each rank sends to each other, and gaps between the parts.
void Builder::place_parts(Step& step, const Section& section) {
  const int n = size_of_comm(step.comm);
  const auto ranks = static_cast<std::size_t>(n);
  const std::int64_t elements = (section.end - section.begin) / static_cast<std::int64_t>(size_of(step.dtype));
  const std::int64_t most = elements / (4 * n), gap = std::max<std::int64_t>(most / 8, 1);
  const auto spread = [&](Side& side, std::vector<std::int64_t> counts) {
    std::vector<std::size_t> order(ranks);
    std::iota(order.begin(), order.end(), std::size_t{0});
    if (random_.chance(30)) random_.shuffle(order);
    side.counts = std::move(counts);
    side.offsets.resize(ranks);
    std::int64_t at = 0;
    for (std::size_t r : order) {
      if (random_.chance(30)) at += random_.below(gap);
      side.offsets[r] = at;
      at += side.counts[r];
    }
    side.count = at;
  };
  std::vector<std::vector<std::int64_t>> table(ranks, std::vector<std::int64_t>(ranks));
  for (auto& row : table) {
    for (auto& count : row) count = count_up_to(most);
  }
  const std::vector<std::int64_t>& own = table[0];  // for operations where all ranks know the same list
  for (std::size_t r = 0; r < ranks; ++r) {
    Share& share = step.shares[r];
    const bool root = static_cast<int>(r) == step.root;
    switch (step.op) {
      case Op::gatherv:
        share.in.count = own[r];
        if (root) spread(share.out, own);
        break;
      case Op::scatterv:
        share.out.count = own[r];
        if (root) spread(share.in, own);
        break;
      case Op::all_gatherv:
        share.in.count = own[r];
        spread(share.out, own);
        break;
      case Op::reduce_scatterv:
        share.out.count = own[r];
        spread(share.in, own);
        break;
      default: {
        std::vector<std::int64_t> column;
        for (const auto& row : table) column.push_back(row[r]);
        spread(share.in, table[r]);
        spread(share.out, column);
      }
    }
    const auto at = place_apart({share.in.count, share.out.count}, step.dtype, section);
    share.in.at = at[0];
    share.out.at = at[1];
  }
}

}  // namespace medley::soak
