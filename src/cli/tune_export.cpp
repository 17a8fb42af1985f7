#include "cli/tune_export.hpp"

#include <fmt/format.h>

#include <medley/error.hpp>

#include "base/write_file.hpp"
#include "cli/own_ranks.hpp"
#include "cli/sizes.hpp"
#include "cli/table.hpp"
#include "cli/terminal.hpp"
#include "openmpi_tuner/sweep.hpp"
#include "tune/export.hpp"
#include "tune/sizes.hpp"
#include "tune/tune_job.hpp"

namespace medley::cli {
namespace {

void write_export(const std::string& file, const std::string& text) {
  core::write_file(file, [&](std::ostream& out) { out << text; });
}

int export_table(const ExportArguments& given) {
  const route::Table table = route::Table::load(route::table_to_read(given.table));
  const tune::Export exported = given.library == "nccl" ? tune::nccl_export(table) : tune::ucc_export(table);
  write_export(given.file, exported.text);
  fmt::print("{}: {} rules for {}\n", given.file, exported.rules, given.library);
  return 0;
}

/// Open MPI's algorithms are measured in its own blocking calls: Medley's routes over mpi are non-blocking and say
/// little about them.
int export_openmpi(const ExportArguments& given, const std::function<bool()>& stop) {
  openmpi_tuner::SweepRequest request{openmpi_tuner::all_collectives(), {}, given.seconds};
  const auto [first, last] = parse_size_range(given.sizes);
  for (const std::size_t size : tune::size_ladder(first, last))
    request.sizes.push_back(static_cast<std::int64_t>(size));
  ProgressBar bar;
  const openmpi_tuner::SweepResult result = openmpi_tuner::run_sweep(
      request,
      {.progress = [&](const std::string& now, double part) { bar.show(part * given.seconds, given.seconds, now); },
       .stop = stop});
  if (result.rank != 0) return 0;
  bar.clear();
  write_export(given.file, openmpi_tuner::rules_file(result));
  Table lines({"collective", "bytes", "algorithm", "us", "Open MPI's choice, us", "gain"});
  for (const openmpi_tuner::Cell& cell : result.cells) {
    const openmpi_tuner::Timing& best = openmpi_tuner::best(cell);
    const double own = cell.timings.front().median_us;
    lines.add({cell.collective, size_text(cell.bytes),
               best.algorithm.number == 0 ? "its own choice" : best.algorithm.name,
               fmt::format("{:.2f}", best.median_us), fmt::format("{:.2f}", own),
               fmt::format("{:.2f}x", own / best.median_us)});
  }
  fmt::print(
      "{}\n{}: rules for {}; use them with\n  mpirun --mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_dynamic_rules_filename {} …\n",
      lines.str(), given.file, result.library, given.file);
  return 0;
}

}  // namespace

int run_export(const ExportArguments& given, const std::function<bool()>& stop,
               const std::function<void()>& catch_signals) {
  if (given.file.empty()) throw Error(ErrorKind::invalid, "--export needs -o FILE, the file to write");
  check_outputs({given.file});
  if (given.library == "openmpi") {
    return on_ranks(given.ranks, "mpi", [&] {
      catch_signals();
      return export_openmpi(given, stop);
    });
  }
  if (given.ranks > 0)
    throw Error(
        ErrorKind::invalid,
        fmt::format(
            "--export {} only reads a table (--table), so leave -n out; measure first with medley tune -n {} -o TABLE",
            given.library, given.ranks));
  return export_table(given);
}

}  // namespace medley::cli
