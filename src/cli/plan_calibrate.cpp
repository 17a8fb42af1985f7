// medley plan calibrate: fits the time model's constants to measured steps and shows the error on held-out
// ones.
#include <fmt/format.h>

#include <memory>
#include <ostream>

#include "base/write_file.hpp"
#include "cli/command.hpp"
#include "cli/table.hpp"
#include "cost/calibrate_machine.hpp"
#include "trace/summary.hpp"

namespace medley::cli {
namespace {

struct CalibrateOptions : cost::CalibrateRequest {
  std::string output, json;
};

/// Of the busiest rank: from the start of one step to the start of the next, or the only step's own time.
double trace_step_us(const std::string& path) {
  const trace::Trace t = trace::open_trace(path);
  const trace::RankTrace& rank = trace::busiest(t);
  const trace::Steps steps = trace::find_steps(t, rank);
  const double period = trace::step_period_us(rank, steps);
  const double us = period > 0 ? period : trace::summarise(t, rank, steps).step_us;
  if (us <= 0) throw Error(ErrorKind::invalid, fmt::format("{}: the trace has no times to calibrate with", path));
  return us;
}

void print_calibration(const cost::CalibrateResult& result) {
  Table table({"constant", "was", "is", "from"});
  for (const cost::ConstantRow& row : cost::constant_rows)
    table.add({std::string(row.name), fmt::format("{:.4g}", result.before.*row.member),
               fmt::format("{:.4g}", result.machine.constants.*row.member), row.fitted ? "fit" : "published"});
  fmt::print("{}\n", table.str());
  fmt::print("fitted on {} steps: error {:.2f} %, worst {:.1f} %\n", result.fit_steps, 100 * result.fit.mape,
             100 * result.fit.worst);
  fmt::print("held out  {} steps: error {:.2f} %, worst {:.1f} %, bias {:+.2f} %\n", result.held_out_steps,
             100 * result.held_out.mape, 100 * result.held_out.worst, 100 * result.held_out.bias);
  if (!result.skipped.empty()) fmt::print("skipped {} rows:\n", result.skipped.size());
  for (const std::string& row : result.skipped) fmt::print("  {}\n", row);
}

int calibrate(const CalibrateOptions& options) {
  const cost::CalibrateResult result = cost::calibrate_machine(options);
  if (!options.output.empty())
    core::write_file(options.output, [&](std::ostream& out) { out << cost::machine_toml(result); });
  if (options.json != "-") print_calibration(result);
  write_json(options.json, to_json(result));
  return 0;
}

}  // namespace

void add_plan_calibrate(CLI::App& parent) {
  auto options = std::make_shared<CalibrateOptions>();
  options->trace_time = trace_step_us;
  CLI::App* command =
      add_command(parent, "calibrate", "Fits the time model to measured steps; half of them are held out",
                  "medley plan calibrate --data steps.csv --machine dgx-a100 -o here.toml",
                  [options] { return calibrate(*options); });
  command
      ->add_option("--data", options->data,
                   "CSV files of measured steps, in the columns of bench/steps or of vTrain's table; a column 'trace' "
                   "names a recorded run, relative to the file, whose step time counts")
      ->required()
      ->delimiter(',');
  command->add_option("--framework", options->framework,
                      "Framework that ran them, where the file does not say (vTrain's: megatron)");
  command->add_flag("--all", options->all,
                    "Fit on all rows: the figures then say how well it fits, not how well it predicts");
  command->add_flag("--skip-bad-rows", options->skip_bad_rows,
                    "Use the other rows of a file with bad ones, and list those; default: refuse it, all named");
  command->add_option("--machine", options->machine, "Machine they ran on: name or TOML file")->capture_default_str();
  command->add_option("--vocab", options->vocab, "Vocabulary of the models")->capture_default_str();
  command->add_option("--keep", options->keep, "Constants to leave as they are, separated by commas")->delimiter(',');
  command->add_flag("--check", options->check_only, "Fit nothing; show the error of the constants as they are");
  names_file(command->add_option("-o,--output", options->output,
                                 "Write the machine with the fitted constants to this TOML file"));
  add_json(*command, options->json, "the result");
}

}  // namespace medley::cli
