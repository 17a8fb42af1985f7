#include "tune/nccl_sweep.hpp"

#include <fmt/format.h>

#include <medley/error.hpp>

#include "tune/cell_statistics.hpp"
#include "tune/nccl_variant.hpp"
#include "tune/rank_setup.hpp"

namespace medley::tune {
namespace {

/// Adds the cells of one variant's table to the job's.
void add_cells(const route::Table& measured, route::Table& table) {
  for (route::Cell cell : measured.cells()) {
    if (const route::Cell* before = table.find(cell.key)) cell = merged(std::move(cell), *before);
    table.put(std::move(cell));
  }
}

}  // namespace

NcclSweepResult sweep_nccl(const TuneRequest& request, TuneResult tuned,
                           const std::vector<route::NcclAlgorithm>& variants, const TuneJobHooks& hooks) {
  NcclSweepResult result{.tuned = std::move(tuned), .refused = {}};
  const std::size_t had = result.tuned.table.cells().size();
  for (const route::NcclAlgorithm& variant : variants) {
    TuneOptions options = request.options;
    options.backends = {"nccl"};
    options.seconds = request.options.seconds / static_cast<double>(variants.size());
    std::erase_if(options.ops, [&](Op op) { return !serves(variant, op); });
    if (options.ops.empty()) continue;
    set_nccl_variant(variant);
    route::Table measured;
    try {
      Context context(context_for(options.backends, Memory::cuda));
      result.tuned.rank = context.rank();
      tune(context, options, measured,
           {.changed = [](const route::Table&) {}, .progress = hooks.progress, .stop = hooks.stop});
    } catch (const Error& error) {  // the same on all ranks: a failed comm fails everywhere
      result.refused.push_back(fmt::format("{}: {}", route::name(variant), error.what()));
    }
    add_cells(measured, result.tuned.table);
    if (result.tuned.rank == 0) result.tuned.table.save(result.tuned.file);
  }
  result.tuned.new_cells += result.tuned.table.cells().size() - had;
  return result;
}

}  // namespace medley::tune
