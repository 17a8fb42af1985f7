// medley plan calibrate: fits the time model's constants to measured steps and shows the error on those held
// out.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <fstream>
#include <medley/error.hpp>
#include <memory>
#include <sstream>

#include "cli/command.hpp"
#include "cli/table.hpp"
#include "cost/calibrate.hpp"

namespace medley::cli {
namespace {

struct CalibrateOptions {
  std::vector<std::string> data;
  std::string framework, machine = "dgx-a100", output, json;
  bool all = false;
  plan::Count vocab = 50257;
  std::vector<std::string> keep;
  bool check_only = false;
};

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) throw Error(ErrorKind::invalid, fmt::format("cannot read {}", path));
  return text.str();
}

void write_machine(const std::string& path, const cost::Machine& m, const std::string& data) {
  std::ofstream file(path);
  file << fmt::format(
      "# Calibrated on {} by medley plan calibrate.\ngpu = \"{}\"\ngpus_per_host = {}\nmemory_gb = {}\n",
      data, m.gpu.name, m.gpus_per_host, m.memory_gb);
  if (m.gpu_share != 1) file << fmt::format("gpu_share = {}\n", m.gpu_share);
  for (const auto& [name, link] : {std::pair{"inside", m.inside}, {"between", m.between}}) {
    file << fmt::format("\n[{}]\nlatency_us = {}\nbandwidth_gb_per_s = {}\n", name, link.latency_us,
                        link.gb_per_s);
  }
  file << "\n[constants]\n";
  for (const cost::ConstantRow& row : cost::constant_rows) {
    file << fmt::format("{} = {:.6g}\n", row.name, m.constants.*row.member);
  }
  if (!file.flush())
    throw Error(ErrorKind::invalid, fmt::format("cannot write {}: check that its folder exists", path));
}

nlohmann::ordered_json to_json(const cost::PredictionError& e) {
  return {{"mape", e.mape}, {"worst", e.worst}, {"bias", e.bias}};
}

int calibrate(const CalibrateOptions& options) {
  const auto framework = plan::parse_framework(options.framework);
  if (!framework && !options.framework.empty())
    throw Error(ErrorKind::invalid, fmt::format("unknown framework '{}'", options.framework));
  cost::Machine machine = cost::find_machine(options.machine);
  std::vector<cost::MeasuredStep> steps;
  for (const std::string& file : options.data) {
    for (cost::MeasuredStep& step : cost::read_measured(read_file(file), file, options.vocab)) {
      if (!step.gpu.empty() && step.gpu != machine.gpu.name) continue;  // of another machine
      if (framework) step.framework = *framework;
      steps.push_back(std::move(step));
    }
  }
  if (steps.empty())
    throw Error(ErrorKind::invalid,
                fmt::format("no step of a {} is in {}", machine.gpu.name, fmt::join(options.data, ", ")));
  cost::Halves halves = cost::split(steps);
  if (options.all) halves.fit = steps;
  const cost::CostConstants before = machine.constants;
  if (!options.check_only) machine.constants = cost::fit_constants(halves.fit, machine, options.keep);
  const auto seen = cost::prediction_error(halves.fit, machine);
  const auto unseen = cost::prediction_error(halves.held_out, machine);

  Table table({"constant", "was", "is", "from"});
  nlohmann::ordered_json constants;
  for (const cost::ConstantRow& row : cost::constant_rows) {
    table.add({std::string(row.name), fmt::format("{:.4g}", before.*row.member),
               fmt::format("{:.4g}", machine.constants.*row.member), row.fitted ? "fit" : "published"});
    constants[std::string(row.name)] = machine.constants.*row.member;
  }
  if (!options.output.empty())
    write_machine(options.output, machine, fmt::format("{}", fmt::join(options.data, ", ")));
  if (options.json != "-") {
    fmt::print("{}\n", table.str());
    fmt::print("fitted on {} steps: error {:.2f} %, worst {:.1f} %\n", halves.fit.size(), 100 * seen.mape,
               100 * seen.worst);
    fmt::print("held out  {} steps: error {:.2f} %, worst {:.1f} %, bias {:+.2f} %\n", halves.held_out.size(),
               100 * unseen.mape, 100 * unseen.worst, 100 * unseen.bias);
  }
  write_json(options.json, {{"framework", options.framework},
                            {"machine", machine.name},
                            {"constants", constants},
                            {"fit", to_json(seen)},
                            {"held_out", to_json(unseen)}});
  return 0;
}

}  // namespace

void add_plan_calibrate(CLI::App& parent) {
  auto options = std::make_shared<CalibrateOptions>();
  CLI::App* command =
      add_command(parent, "calibrate", "Fits the time model to measured steps; half of them are held out",
                  "medley plan calibrate --data steps.csv --machine dgx-a100 -o here.toml",
                  [options] { return calibrate(*options); });
  command
      ->add_option("--data", options->data,
                   "CSV files of measured steps, in the columns of bench/steps or of vTrain's table")
      ->required()
      ->delimiter(',');
  command->add_option("--framework", options->framework,
                      "Framework that ran them, where the file does not say (vTrain's: megatron)");
  command->add_flag("--all", options->all,
                    "Fit on all rows: the figures then say how well it fits, not how well it predicts");
  command->add_option("--machine", options->machine, "Machine they ran on: name or TOML file")
      ->capture_default_str();
  command->add_option("--vocab", options->vocab, "Vocabulary of the models")->capture_default_str();
  command->add_option("--keep", options->keep, "Constants to leave as they are, separated by commas")
      ->delimiter(',');
  command->add_flag("--check", options->check_only,
                    "Fit nothing; show the error of the constants as they are");
  command->add_option("-o,--output", options->output,
                      "Write the machine with the fitted constants to this TOML file");
  command->add_option("--json", options->json, "Write the result as JSON ('-' for stdout)");
}

}  // namespace medley::cli
