#include "tune/export.hpp"

#include <fmt/format.h>

#include <functional>
#include <map>
#include <medley/error.hpp>
#include <set>

#include "route/choose.hpp"
#include "route/nccl_algorithm.hpp"
#include "tune/size_text.hpp"

namespace medley::tune {
namespace {

struct MeasuredOp {
  Op op;
  route::Shape shape;
  bool operator<(const MeasuredOp& other) const { return std::tie(op, shape) < std::tie(other.op, other.shape); }
};

/// The ranges of every operation and shape for which `usable` routes were measured; of reductions those of f32, or else
/// others.
std::map<MeasuredOp, std::vector<route::SizeRange>> ranges_of(const route::Table& table, Memory memory,
                                                              const route::Usable& usable) {
  std::map<MeasuredOp, std::vector<route::SizeRange>> found;
  for (const route::Cell& cell : table.cells()) {
    const MeasuredOp measured{cell.key.op, cell.key.shape};
    if (cell.key.memory != memory || found.contains(measured)) continue;
    const route::DTypeClass dtype = reduces(cell.key.op) ? route::DTypeClass::floating : route::DTypeClass::any;
    found[measured] = route::choose(table, cell.key.op, memory, dtype, cell.key.shape, usable).ranges;
  }
  return found;
}

std::string first_lines(const route::Table& table, const std::string& how) {
  return fmt::format("# Written by medley tune --export from the route table {}.\n# {}\n", table.hash(), how);
}

const std::map<Op, std::string> nccl_names = {{Op::broadcast, "broadcast"},
                                              {Op::reduce, "reduce"},
                                              {Op::all_gather, "allgather"},
                                              {Op::reduce_scatter, "reducescatter"},
                                              {Op::all_reduce, "allreduce"}};

/// The end of a range that has none, as the example plugin writes it.
constexpr std::int64_t nccl_largest = 4294967295;

/// UCC's collective and the algorithm of its UCP layer that is Medley's of this name.
struct UccOp {
  std::string name;
  std::map<std::string, std::string, std::less<>> algorithms;
};
const std::map<Op, UccOp> ucc_ops = {
    {Op::all_reduce, {"allreduce", {{"recursive_doubling", "knomial"}, {"rabenseifner", "sra_knomial"}}}},
    {Op::all_gather,
     {"allgather", {{"ring", "ring"}, {"bruck", "bruck"}, {"linear", "linear"}, {"recursive_doubling", "knomial"}}}},
    {Op::all_to_all, {"alltoall", {{"pairwise", "pairwise"}, {"bruck", "bruck"}}}},
    {Op::broadcast,
     {"bcast", {{"knomial", "knomial"}, {"binomial", "knomial"}, {"scatter_all_gather", "sag_knomial"}}}},
    {Op::reduce, {"reduce", {{"knomial", "knomial"}, {"binomial", "knomial"}, {"rabenseifner", "srg"}}}},
    {Op::reduce_scatter, {"reduce_scatter", {{"ring", "ring"}, {"recursive_halving", "knomial"}}}},
};

const std::string* ucc_algorithm(Op op, const Choice& route) {
  const auto found = ucc_ops.find(op);
  if (found == ucc_ops.end() || route.backend != "ucx") return nullptr;
  const auto algorithm = found->second.algorithms.find(route.algorithm);
  return algorithm == found->second.algorithms.end() ? nullptr : &algorithm->second;
}

}  // namespace

Export nccl_export(const route::Table& table) {
  Export out;
  out.text = first_lines(
      table, "For NCCL's example tuner plugin: NCCL_TUNER_PLUGIN names it, NCCL_TUNER_CONFIG_FILE this file.");
  out.text += "# collective,min_bytes,max_bytes,algorithm,protocol,channels,nodes,ranks\n";
  for (const auto& [measured, ranges] :
       ranges_of(table, Memory::cuda, [](const Choice& route) { return route.backend == "nccl"; })) {
    const auto name = nccl_names.find(measured.op);
    if (name == nccl_names.end()) continue;
    for (const route::SizeRange& range : ranges) {
      const auto chosen = route::parse_nccl_algorithm(range.route.algorithm);
      if (!chosen) continue;  // NCCL's own choice was the fastest
      out.text += fmt::format("{},{},{},{},{},{},{},{}\n", name->second, range.from, std::min(range.to, nccl_largest),
                              route::nccl_algorithms[static_cast<std::size_t>(chosen->algorithm)],
                              route::nccl_protocols[static_cast<std::size_t>(chosen->protocol)],
                              chosen->channels == 0 ? -1 : chosen->channels, measured.shape.hosts,
                              measured.shape.hosts * measured.shape.ranks_per_host);
      ++out.rules;
    }
  }
  if (out.rules == 0) {
    throw Error(
        ErrorKind::invalid,
        "the table has no row in which one of NCCL's algorithms beats NCCL's own choice; measure them with medley tune --memory cuda --nccl all");
  }
  return out;
}

Export ucc_export(const route::Table& table) {
  Export out;
  std::map<std::pair<Op, int>, route::Shape> used;  // UCC's rules know the number of ranks alone
  std::string tokens;
  const auto all = [&](Op op) {
    return ranges_of(table, Memory::host, [op](const Choice& route) { return ucc_algorithm(op, route) != nullptr; });
  };
  for (const auto& [op, names] : ucc_ops) {
    for (const auto& [measured, ranges] : all(op)) {
      if (measured.op != op) continue;
      const int ranks = measured.shape.hosts * measured.shape.ranks_per_host;
      const auto [other, first] = used.try_emplace({op, ranks}, measured.shape);
      if (!first) continue;
      // UCC counts what one rank keeps of a reduce_scatter.
      const std::int64_t divisor = op == Op::reduce_scatter ? ranks : 1;
      for (const route::SizeRange& range : ranges) {
        const std::string to = range.to == INT64_MAX ? "inf" : size_text(range.to / divisor);
        tokens += fmt::format("{}{}:{}-{}:host:[{}-{}]:inf:@{}", tokens.empty() ? "" : "#", names.name,
                              size_text(range.from / divisor), to, ranks, ranks, *ucc_algorithm(op, range.route));
        ++out.rules;
      }
    }
  }
  if (out.rules == 0)
    throw Error(ErrorKind::invalid,
                "the table has no rows of algorithms over ucx; measure them with medley tune --backends ucx");
  out.text = first_lines(table, "For UCC: UCC_CONFIG_FILE names this file; or export the line below.") +
             "UCC_TL_UCP_TUNE=" + tokens + "\n";
  return out;
}

}  // namespace medley::tune
