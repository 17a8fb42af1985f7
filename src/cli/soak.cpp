// medley soak: random programs that mix backends, against an oracle.
#include "soak/soak.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "bootstrap/environment.hpp"
#include "cli/bench_ranks.hpp"
#include "cli/command.hpp"
#include "cli/sizes.hpp"
#include "comm/plugins.hpp"
#include "soak/invalid.hpp"
#include "soak/ranks_job.hpp"

namespace medley::cli {
namespace {

struct SoakArguments {
  int ranks = 0;
  std::uint64_t seed = 1;
  std::int64_t programs = 100;
  std::string backends;
  std::string json;
  std::string without;
  std::string memory = "host";
  double seconds = 0;
  double deadline = 30;
  std::uint64_t program = 0;
  CLI::Option* one = nullptr;
  bool only_invalid = false, only_valid = false;
};

soak::WorkerOptions options_of(const SoakArguments& given) {
  soak::WorkerOptions options;
  options.first = given.one && *given.one ? given.program : given.seed;
  options.programs = given.one && *given.one ? 1 : given.programs;
  options.seconds = given.seconds;
  options.deadline =
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(given.deadline));
  options.generate.backends = parse_list(given.backends);
  options.generate.memory = memory_of_word(given.memory);
  for (const std::string& word : parse_list(given.without))
    options.without.push_back(static_cast<int>(parse_size(word)));
  if (options.generate.backends.empty()) {
    for (const auto& known : core::known_backends()) {
      if (known->unavailable().empty()) options.generate.backends.push_back(known->name());
    }
  }
  return options;
}

std::string last_line(std::int64_t programs, std::int64_t mismatches, std::int64_t hangs) {
  return fmt::format("{} programs, {} mismatches, {} hangs\n", programs, mismatches, hangs);
}

/// On a rank, one that this command started or one that a launcher did.
int soak_here(const SoakArguments& given, const Place& place) {
  const soak::WorkerOptions options = options_of(given);
  if (const char* path = std::getenv(soak::report_variable)) {
    const soak::Report report{std::string(path)};
    if (given.only_invalid) soak::work_invalid(options, place.size, report[place.rank]);
    soak::work(options, &report[place.rank]);
    return 0;
  }
  soak::Tally tally;
  std::string problem;
  try {
    tally = soak::work(options, nullptr);
  } catch (const Error& error) {
    problem = error.what();
    ++(error.kind() == ErrorKind::timeout ? tally.hangs : tally.mismatches);
  }
  if (!problem.empty()) fmt::print(stderr, "rank {}: {}\n", place.rank, problem);
  if (place.rank == 0) fmt::print("{}", last_line(tally.programs, tally.mismatches, tally.hangs));
  return tally.mismatches + tally.hangs > 0 ? 1 : 0;
}

std::string describe(const soak::Failure& failure, const SoakArguments& given,
                     const soak::WorkerOptions& options) {
  const bool hang = failure.what == soak::Failure::What::hang;
  const auto whole = soak::generate(failure.program, given.ranks, options.generate);
  std::string text =
      fmt::format("program {}: {}\n{}\n", failure.program, hang ? "hang" : "mismatch", failure.text);
  text += soak::to_text(failure.left_out.empty() ? whole : soak::without(whole, failure.left_out));
  const std::string without =
      failure.left_out.empty() ? "" : fmt::format(" --without {}", fmt::join(failure.left_out, ","));
  return text + fmt::format("again: medley soak -n {} --backends {}{} --program {}{}\n\n", given.ranks,
                            fmt::join(options.generate.backends, ","), given.memory == "cuda" ? " --memory cuda" : "",
                            failure.program, without);
}

/// One wrong program for so many right ones: each needs fresh ranks, and some must wait for a deadline.
constexpr std::int64_t right_per_wrong = 50;
// What wrong programs are given to be found out; the mistakes show at once, a stopped rank after this.
constexpr auto invalid_deadline = std::chrono::seconds(3);

soak::InvalidOutcome run_invalid(const SoakArguments& given, const soak::WorkerOptions& valid) {
  soak::WorkerOptions options = valid;
  options.programs = given.only_invalid ? valid.programs : valid.programs / right_per_wrong;
  options.deadline = invalid_deadline;
  const auto outcome = soak::soak_invalid(given.ranks, options, [&](const soak::InvalidFailure& failure) {
    if (given.json == "-") return;
    fmt::print("wrong program {}: {}\n{}again: medley soak -n {} --backends {} --invalid --program {}\n\n",
               failure.program, failure.plan, failure.text, given.ranks,
               fmt::join(valid.generate.backends, ","), failure.program);
    std::fflush(stdout);
  });
  if (given.json != "-" && options.programs > 0) {
    fmt::print("{} wrong programs, {} diagnosed wrongly or too late\n", outcome.programs, outcome.failures.size());
  }
  return outcome;
}

nlohmann::ordered_json json_of(const soak::Outcome& outcome, const SoakArguments& given,
                               const soak::WorkerOptions& options, std::int64_t mismatches,
                               std::int64_t hangs) {
  nlohmann::ordered_json value{
      {"ranks", given.ranks},         {"seed", options.first},    {"backends", options.generate.backends},
      {"programs", outcome.programs}, {"mismatches", mismatches}, {"hangs", hangs}};
  value["failures"] = nlohmann::ordered_json::array();
  for (const auto& failure : outcome.failures) {
    value["failures"].push_back({{"program", failure.program},
                                 {"kind", failure.what == soak::Failure::What::hang ? "hang" : "mismatch"},
                                 {"text", failure.text},
                                 {"without", failure.left_out}});
  }
  return value;
}

int soak_watched(const SoakArguments& given) {
  soak::SoakOptions options;
  options.ranks = given.ranks;
  options.work = options_of(given);
  const bool on_terminal = isatty(STDERR_FILENO) == 1, prints = given.json != "-";
  const bool alone = given.one && *given.one;
  const bool on_host = given.memory == "host";   // where wrong programs have their memory
  const auto wrong = given.only_invalid || !(given.only_valid || alone || !on_host) ? run_invalid(given, options.work)
                                                                        : soak::InvalidOutcome{};
  if (given.only_invalid) options.work.programs = 0;
  const auto outcome = soak::soak(
      options,
      [&](std::int64_t done) {
        if (on_terminal) fmt::print(stderr, "\r{} of {} programs", done, options.work.programs);
      },
      [&](const soak::Failure& failure) {
        if (on_terminal) fmt::print(stderr, "\r\033[K");
        if (prints) fmt::print("{}", describe(failure, given, options.work));
        std::fflush(stdout);
      });
  if (on_terminal) fmt::print(stderr, "\r\033[K");
  std::int64_t hangs = 0;
  for (const auto& failure : outcome.failures) hangs += failure.what == soak::Failure::What::hang;
  const auto mismatches = static_cast<std::int64_t>(outcome.failures.size()) - hangs;
  if (prints) fmt::print("{}", last_line(outcome.programs, mismatches, hangs));
  auto json = json_of(outcome, given, options.work, mismatches, hangs);
  json["invalid"] = {{"programs", wrong.programs}, {"wrong", wrong.failures.size()}};
  for (const auto& failure : wrong.failures) {
    json["invalid"]["failures"].push_back(
        {{"program", failure.program}, {"plan", failure.plan}, {"text", failure.text}});
  }
  write_json(given.json, json);
  return outcome.failures.empty() && wrong.failures.empty() ? 0 : 1;
}

int soak_command(const SoakArguments& given) {
  if (const auto place = find_place(process_environment())) {
    if (given.ranks > 0 && given.ranks != place->size) {
      throw Error(ErrorKind::invalid,
                  fmt::format("-n {} does not fit the {} ranks that {} started; leave -n out", given.ranks,
                              place->size, name(place->source)));
    }
    return soak_here(given, *place);
  }
  if (given.ranks < 1)
    throw Error(ErrorKind::invalid, "-n is missing: how many ranks shall run the programs?");
  return soak_watched(given);
}

}  // namespace

void add_soak(CLI::App& app) {
  auto given = std::make_shared<SoakArguments>();
  CLI::App* soak = add_command(app, "soak", "Random programs that mix backends, against an oracle",
                               "medley soak -n 4 --seed 1 --programs 200 --backends shm,mpi",
                               [given] { return soak_command(*given); });
  soak->add_option("-n,--nproc-per-node", given->ranks, "ranks to start on this host; none under a launcher")
      ->check(CLI::Range(1, 64));
  soak->add_option("--seed", given->seed, "of the first program; the others have the next ones")
      ->capture_default_str();
  soak->add_option("--programs", given->programs, "how many")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40))
      ->capture_default_str();
  soak->add_option("--backends", given->backends, "backends to mix (default: all that work here)");
  add_memory(*soak, given->memory);
  soak->add_option("--seconds", given->seconds, "stop after this time")->check(CLI::Range(0.0, 1e9));
  soak->add_option("--deadline", given->deadline, "seconds that a wait may last before it is a hang")
      ->check(CLI::Range(0.1, 1e6))
      ->capture_default_str();
  given->one = soak->add_option("--program", given->program, "run the program of this seed alone");
  soak->add_option("--without", given->without, "leave out these steps of it, as a shrunk failure says");
  auto* invalid = soak->add_flag("--invalid", given->only_invalid,
                                 "run wrong programs only: mistakes, killed and stopped ranks");
  soak->add_flag("--valid", given->only_valid, "run right programs only; by default one in 50 more is wrong")
      ->excludes(invalid);
  soak->add_option("--json", given->json, "write the counts and failures as JSON; - for stdout");
}

}  // namespace medley::cli
