// medley help: a command's --help, or a paragraph on something that concerns several of them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <medley/error.hpp>

#include "base/closest.hpp"
#include "cli/command.hpp"

namespace medley::cli {
namespace {

const std::map<std::string, std::string>& topics() {
  static const std::map<std::string, std::string> all{
      {"environment",
       "MEDLEY_BACKENDS=shm,ucx    backends of programs that name none\n"
       "MEDLEY_RULES='*=mpi'       which backend carries which operation (medley help routes)\n"
       "MEDLEY_TABLE=routes.json   a route table that medley tune wrote; empty: none\n"
       "MEDLEY_ONLINE=1            measure routes again in the running job and change them where another is faster\n"
       "MEDLEY_TRACE=DIR           keep every operation in this folder (medley trace DIR)\n"
       "MEDLEY_CHECK=1             report the first collective in which ranks differ\n"
       "MEDLEY_TOKEN=…             the job's secret, the same on all ranks; needed on several hosts\n"
       "NO_COLOR=1                 no colours\n"
       "docs/reference-commands.md lists all of them.\n"},
      {"exit-status",
       "0  success\n"
       "1  what was checked does not hold, or the work failed: a difference, a layout that does not fit, a lost rank\n"
       "2  bad usage or bad input; one line on stderr names the value\n"
       "medley run exits with the status of the first rank that failed: 128 + signal for one that was killed.\n"},
      {"launching",
       "medley run -n 4 -- PROGRAM         four ranks on this host, each on a core\n"
       "torchrun --nproc-per-node 4 …      medley.torch joins torchrun's ranks\n"
       "mpirun -n 4 PROGRAM                Open MPI or MPICH\n"
       "srun -n 4 PROGRAM                  Slurm; --mpi=pmix for the mpi backend\n"
       "On several hosts export MEDLEY_TOKEN first: export MEDLEY_TOKEN=$(head -c16 /dev/urandom | base64)\n"
       "bench, tune, soak and replay join the ranks of a launcher; without one, -n starts them here.\n"
       "docs/launching.md has the rest.\n"},
      {"layout",
       "--layout dp=8,tp=4,pp=2,sp=on,zero=1: keys dp, tp, pp, ep, cp, vp, sp, zero, flash, compile, recompute, overlap flags\n"
       "and batch sizes, separated by commas; or a ds_config.json, NeoX yml or Megatron's arguments; or both: FILE,dp=8.\n"
       "With world=64, dp is what the other sizes leave of 64 ranks.\n"
       "docs/plan.md lists the keys; medley plan search finds the fastest layout.\n"},
      {"routes",
       "A route is a backend and one of its algorithms. The call decides first ({.backend = \"mpi\"}), then rules, then a measured\n"
       "table, then the built-in order: nccl for CUDA tensors, shm inside a host, between hosts a pair such as shm+mpi for most\n"
       "collectives, otherwise the first backend of the context.\n"
       "Rules: OP[:FROM-TO][@MEMORY]=BACKEND[/ALGORITHM], separated by semicolons, such as\n"
       "  all_reduce:0-4K=shm; all_to_all=mpi/pairwise; *@cuda=nccl; *=gloo\n"
       "Tables: medley tune writes one, medley explain says what it chooses. docs/routing.md and docs/tuning.md have the rest.\n"},
      {"sizes",
       "Sizes read 4, 64K, 1M, 2G, in powers of 1024, and count the full tensor: of all_gather the gathered output, of\n"
       "reduce_scatter the whole input, of gather, scatter and all_to_all the whole buffer of one rank.\n"},
  };
  return all;
}

std::vector<std::string> topic_names() {
  std::vector<std::string> names;
  for (const auto& [name, text] : topics()) names.push_back(name);
  return names;
}

/// As `medley COMMAND --help` prints it.
std::string help_of(const CLI::App& command, const std::string& before) {
  return command.get_formatter()->make_help(&command, before, CLI::AppFormatMode::Normal);
}

int show_help(const CLI::App& app, const std::vector<std::string>& words) {
  if (words.empty()) {
    fmt::print("{}\nTopics for medley help: {}, and every command\n", help_of(app, "medley"),
               fmt::join(topic_names(), ", "));
    return 0;
  }
  if (const auto topic = topics().find(words.front()); topic != topics().end() && words.size() == 1) {
    fmt::print("{}", topic->second);
    return 0;
  }
  const CLI::App* command = &app;
  std::string path = "medley";
  for (const std::string& word : words) {
    const auto named = command->get_subcommands([&](const CLI::App* each) { return each->get_name() == word; });
    if (named.empty()) {
      std::vector<std::string> known = command_names(*command);
      if (command == &app)
        for (const auto& [name, text] : topics()) known.push_back(name);
      throw Error(ErrorKind::invalid,
                  fmt::format("there is no help on \"{}\"{}; see medley help", word, did_you_mean(word, known)));
    }
    command = named.front();
    path += " " + word;
  }
  fmt::print("{}", help_of(*command, path));
  return 0;
}

}  // namespace

void add_help(CLI::App& app) {
  auto words = std::make_shared<std::vector<std::string>>();
  CLI::App* help = add_command(app, "help", "A command's options, or a topic: environment, launching, routes, …",
                               "medley help tune\n  medley help shape search\n  medley help routes",
                               [words, &app] { return show_help(app, *words); });
  help->add_option("TOPIC", *words, fmt::format("A command, or {}", fmt::join(topic_names(), ", ")));
}

}  // namespace medley::cli
