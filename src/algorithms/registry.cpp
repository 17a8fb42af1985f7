#include "algorithms/registry.hpp"

#include <algorithm>
#include <stdexcept>

#include "algorithms/algorithms.hpp"
#include "algorithms/compressed.hpp"

namespace medley::algorithms {
namespace {

constexpr Algorithm all[] = {
    {Op::broadcast, "binomial", binomial_broadcast},
    {Op::broadcast, "knomial", knomial_broadcast},
    {Op::broadcast, "scatter_all_gather", scatter_all_gather_broadcast},
    {Op::reduce, "binomial", binomial_reduce},
    {Op::reduce, "gather_combine", gather_combine_reduce},
    {Op::reduce, "knomial", knomial_reduce},
    {Op::reduce, "rabenseifner", rabenseifner_reduce},
    {Op::all_reduce, "gather_combine", gather_combine_all_reduce},
    {Op::all_reduce, "pairwise", pairwise_all_reduce},
    {Op::all_reduce, "rabenseifner", rabenseifner_all_reduce},
    {Op::all_reduce, "recursive_doubling", recursive_doubling_all_reduce},
    {Op::all_reduce, "ring", ring_all_reduce},
    {Op::gather, "binomial", binomial_gather},
    {Op::gather, "knomial", knomial_gather},
    {Op::gather, "linear", linear_gather},
    {Op::all_gather, "bruck", bruck_all_gather},
    {Op::all_gather, "linear", linear_all_gather},
    {Op::all_gather, "recursive_doubling", recursive_doubling_all_gather},
    {Op::all_gather, "ring", ring_all_gather},
    {Op::scatter, "binomial", binomial_scatter},
    {Op::scatter, "knomial", knomial_scatter},
    {Op::scatter, "linear", linear_scatter},
    {Op::reduce_scatter, "pairwise", pairwise_reduce_scatter},
    {Op::reduce_scatter, "recursive_halving", recursive_halving_reduce_scatter},
    {Op::reduce_scatter, "ring", ring_reduce_scatter},
    {Op::all_to_all, "bruck", bruck_all_to_all},
    {Op::all_to_all, "linear", linear_all_to_all},
    {Op::all_to_all, "pairwise", pairwise_all_to_all},
    {Op::barrier, "dissemination", dissemination_barrier},
    {Op::gatherv, "linear", linear_gather},
    {Op::scatterv, "linear", linear_scatter},
    {Op::all_gatherv, "linear", linear_all_gather},
    {Op::all_gatherv, "ring", ring_all_gather},
    {Op::reduce_scatterv, "pairwise", pairwise_reduce_scatter},
    {Op::reduce_scatterv, "recursive_halving", recursive_halving_reduce_scatter},
    {Op::reduce_scatterv, "ring", ring_reduce_scatter},
    {Op::all_to_allv, "linear", linear_all_to_all},
    {Op::all_to_allv, "pairwise", pairwise_all_to_all},
};

/// With any codec: the name of a compressed route is that of its codec.
constexpr Algorithm compressed[] = {
    {Op::broadcast, {}, compressed_broadcast},
    {Op::reduce, {}, compressed_reduce},
    {Op::all_reduce, {}, compressed_all_reduce},
    {Op::gather, {}, compressed_gather},
    {Op::all_gather, {}, compressed_all_gather},
    {Op::scatter, {}, compressed_scatter},
    {Op::reduce_scatter, {}, compressed_reduce_scatter},
    {Op::all_to_all, {}, compressed_all_to_all},
    {Op::gatherv, {}, compressed_gather},
    {Op::scatterv, {}, compressed_scatter},
    {Op::all_gatherv, {}, compressed_all_gather},
    {Op::reduce_scatterv, {}, compressed_reduce_scatter},
    {Op::all_to_allv, {}, compressed_all_to_all},
};

constexpr std::int64_t kib = 1024;

// Few messages while a tensor is small, few bytes once it is large. The tuner finds the real thresholds;
// these are the usual ones of MPI libraries, in bytes of the whole tensor.
std::string_view chosen_name(const Call& call, int n) {
  const auto element = static_cast<std::int64_t>(size_of(call.dtype));
  const std::int64_t in = call.in_count * element, out = call.out_count * element;
  switch (call.op) {
    case Op::broadcast: {
      const std::int64_t bytes = std::max(in, out);
      return bytes <= 2 * kib ? "knomial" : bytes <= 256 * kib || n < 4 ? "binomial" : "scatter_all_gather";
    }
    case Op::reduce: return in <= 2 * kib ? "knomial" : in <= 64 * kib || n < 4 ? "binomial" : "rabenseifner";
    case Op::all_reduce:
      // Two ranks exchange as many bytes in one round as in two.
      return out <= (n == 2 ? 256 : 16) * kib ? "recursive_doubling"
             // 1 MiB over 8 ranks: 0.9 ms, pairwise 1.0, ring 1.1 (mpi inside a host); 1.7, 1.8 and 1.8 (ucx, two
             // hosts). 16 cores.
             : out <= 1024 * kib && n > 2 ? "rabenseifner"
             : n <= 8                     ? "pairwise"
                                          : "ring";
    case Op::gather: return in <= 4 * kib ? "binomial" : "linear";
    case Op::scatter: return out <= 4 * kib ? "binomial" : "linear";
    case Op::all_gather: return out <= 32 * kib ? "bruck" : "ring";
    case Op::reduce_scatter: return in <= 16 * kib ? "recursive_halving" : n <= 16 ? "pairwise" : "ring";
    case Op::all_to_all: return in <= n * 256 && n > 4 ? "bruck" : "pairwise";
    case Op::barrier: return "dissemination";
    // The counts of v-collectives differ between ranks, so they must not decide.
    case Op::gatherv:
    case Op::scatterv: return "linear";
    case Op::all_gatherv: return "ring";
    case Op::reduce_scatterv: return n <= 16 ? "pairwise" : "ring";
    default: return "pairwise";
  }
}

}  // namespace

const Algorithm* find(Op op, std::string_view name) {
  if (compress::is_compressed(name)) {
    const auto* const at =
        std::find_if(std::begin(compressed), std::end(compressed), [op](const Algorithm& one) { return one.op == op; });
    return at == std::end(compressed) ? nullptr : at;
  }
  for (const Algorithm& algorithm : all) {
    if (algorithm.op == op && algorithm.name == name) return &algorithm;
  }
  return nullptr;
}

const Algorithm& choose(const Call& call, int ranks) {
  const Algorithm* algorithm = find(call.op, chosen_name(call, ranks));
  if (!algorithm) throw std::logic_error("an operation without an algorithm");
  return *algorithm;
}

std::vector<std::string_view> names(Op op) {
  std::vector<std::string_view> list;
  for (const Algorithm& algorithm : all) {
    if (algorithm.op == op) list.push_back(algorithm.name);
  }
  return list;
}

}  // namespace medley::algorithms
