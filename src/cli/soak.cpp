// medley soak: random programs that mix backends, against an oracle.
#include "soak/soak_job.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "bootstrap/environment.hpp"
#include "cli/bench_ranks.hpp"
#include "cli/command.hpp"
#include "cli/own_backends.hpp"
#include "cli/sizes.hpp"
#include "cli/terminal.hpp"
#include "soak/ranks_job.hpp"

namespace medley::cli {
namespace {

struct SoakArguments {
  int ranks = 0;
  std::uint64_t seed = 1;
  std::int64_t programs = 100;
  std::string backends;
  std::string json, progress_to;
  std::string without;
  std::string memory = "host";
  double seconds = 0;
  double deadline = 30;
  std::uint64_t program = 0;
  CLI::Option* one = nullptr;
  bool only_invalid = false, only_valid = false;
  bool online = false;
};

soak::WorkerOptions options_of(const SoakArguments& given) {
  soak::WorkerOptions options;
  options.first = *given.one ? given.program : given.seed;
  options.programs = *given.one ? 1 : given.programs;
  options.seconds = given.seconds;
  options.deadline =
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(given.deadline));
  options.generate.backends = soak::backends_or_all(parse_list(given.backends));
  options.generate.memory = memory_of_word(given.memory);
  options.generate.online = given.online;
  for (const std::string& word : parse_list(given.without))
    options.without.push_back(static_cast<int>(parse_size(word)));
  return options;
}

/// What was mixed, and the counts. Scripts read the last line.
std::string last_lines(const std::vector<std::string>& backends, std::int64_t programs, std::int64_t mismatches,
                       std::int64_t hangs) {
  return fmt::format("mixed {}\n{} programs, {} mismatches, {} hangs\n", fmt::join(backends, ", "), programs,
                     mismatches, hangs);
}

std::string describe(const soak::Failure& failure, const SoakArguments& given, const soak::WorkerOptions& options) {
  const bool hang = failure.what == soak::Failure::What::hang;
  std::string text = fmt::format("program {}: {}\n{}\n", failure.program, hang ? "hang" : "mismatch", failure.text);
  text += soak::program_text(failure, given.ranks, options.generate);
  const std::string without =
      failure.left_out.empty() ? "" : fmt::format(" --without {}", fmt::join(failure.left_out, ","));
  return text + fmt::format("again: medley soak -n {} --backends {}{}{} --program {}{}\n\n", given.ranks,
                            fmt::join(options.generate.backends, ","), given.memory == "cuda" ? " --memory cuda" : "",
                            given.online ? " --online" : "", failure.program, without);
}

std::string describe(const soak::InvalidFailure& failure, const SoakArguments& given,
                     const soak::WorkerOptions& options) {
  return fmt::format("wrong program {}: {}\n{}again: medley soak -n {} --backends {} --invalid --program {}\n\n",
                     failure.program, failure.plan, failure.text, given.ranks,
                     fmt::join(options.generate.backends, ","), failure.program);
}

soak::Programs programs_of(const SoakArguments& given) {
  if (given.only_invalid) return soak::Programs::invalid;
  const bool on_host = given.memory == "host";  // where wrong programs have their memory
  return given.only_valid || *given.one || !on_host ? soak::Programs::valid : soak::Programs::both;
}

/// On a rank, started by this command or by a launcher.
int soak_here(const SoakArguments& given, const Place& place) {
  const soak::WorkerOptions options = options_of(given);
  const auto [tally, problem] = soak::soak_on_rank(options, programs_of(given), place.rank, place.size);
  if (std::getenv(soak::report_variable)) return 0;  // the supervising process reports
  if (!problem.empty()) fmt::print(stderr, "rank {}: {}\n", place.rank, problem);
  if (place.rank == 0)
    fmt::print("{}", last_lines(options.generate.backends, tally.programs, tally.mismatches, tally.hangs));
  return tally.mismatches + tally.hangs > 0 ? 1 : 0;
}

/// Tells medley.soak in Python how far it is: lines of JSON into a named pipe. A line that nobody reads in time is
/// dropped. Without any reader, the process that asked was killed, and this one ends as if interrupted.
void tell(const std::string& pipe, std::int64_t done, std::int64_t of) {
  if (pipe.empty()) return;
  const int descriptor = open(pipe.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) {
    if (errno == ENXIO) raise(SIGINT);
    return;
  }
  const std::string line = fmt::format("[{}, {}, \"programs\"]\n", done, of);
  static_cast<void>(!write(descriptor, line.data(), line.size()));
  close(descriptor);
}

int soak_watched(const SoakArguments& given) {
  const soak::SoakRequest request{given.ranks, options_of(given), programs_of(given)};
  const bool prints = given.json != "-";
  ProgressBar bar;
  const auto show = [&](const std::string& text) {
    bar.clear();
    if (prints) fmt::print("{}", text);
    std::fflush(stdout);
  };
  const soak::SoakResult result = soak::run_soak(
      request,
      {.progress =
           [&](std::int64_t done) {
             bar.show(static_cast<double>(done), static_cast<double>(request.work.programs),
                      fmt::format("{} of {} programs", done, request.work.programs));
             tell(given.progress_to, done, request.work.programs);
           },
       .failed = [&](const soak::Failure& failure) { show(describe(failure, given, request.work)); },
       .invalid_failed = [&](const soak::InvalidFailure& failure) { show(describe(failure, given, request.work)); },
       .invalid_done =
           [&](const soak::SoakResult& so_far) {
             if (!prints || so_far.invalid_asked == 0) return;
             fmt::print("{} wrong programs, {} diagnosed wrongly or too late\n", so_far.invalid.programs,
                        so_far.invalid.failures.size());
           }});
  bar.clear();
  if (prints) fmt::print("{}", last_lines(result.backends, result.valid.programs, result.mismatches(), result.hangs()));
  write_json(given.json, soak::to_json(result));
  return result.passed() ? 0 : 1;
}

int soak_command(const SoakArguments& given) {
  if (const auto place = find_place(process_environment())) {
    if (given.ranks > 0 && given.ranks != place->size) {
      throw Error(ErrorKind::invalid, fmt::format("-n {} does not fit the {} ranks that {} started; leave -n out",
                                                  given.ranks, place->size, name(place->source)));
    }
    if (!std::getenv(soak::report_variable)) note_left_out(given.backends, place);
    return soak_here(given, *place);
  }
  if (given.ranks < 1) throw Error(ErrorKind::invalid, "-n is missing: how many ranks shall run the programs?");
  check_backends_here(given.backends);
  check_outputs({given.json});
  return soak_watched(given);
}

}  // namespace

void add_soak(CLI::App& app) {
  auto given = std::make_shared<SoakArguments>();
  CLI::App* soak = add_command(app, "soak", "Random programs that mix backends, against an oracle",
                               "medley soak -n 4 --seed 1 --programs 200 --backends shm,mpi",
                               [given] { return soak_command(*given); });
  soak->add_option("-n,--nproc-per-node", given->ranks, "Ranks to start on this host; none under a launcher")
      ->check(whole(1, 64));
  soak->add_option("--seed", given->seed, "Seed of the first program; the others have the next ones")
      ->capture_default_str();
  soak->add_option("--programs", given->programs, "Number of programs")
      ->check(whole(1, std::int64_t{1} << 40))
      ->capture_default_str();
  soak->add_option("--backends", given->backends, "Backends to mix (default: all that work here)")
      ->check(known_backends());
  add_memory(*soak, given->memory);
  soak->add_option("--seconds", given->seconds, "Stop after so many seconds")->check(between(0.0, 1e9));
  soak->add_option("--deadline", given->deadline, "Seconds that a wait may last before it is a hang")
      ->check(between(0.1, 1e6))
      ->capture_default_str();
  given->one = soak->add_option("--program", given->program, "Run the program of this seed alone");
  soak->add_option("--without", given->without, "Leave out these steps of it, as a shrunk failure says");
  auto* invalid =
      soak->add_flag("--invalid", given->only_invalid, "Run wrong programs only: mistakes, killed and stopped ranks");
  soak->add_flag("--valid", given->only_valid, "Run right programs only; by default one in 50 more is wrong")
      ->excludes(invalid);
  soak->add_flag("--online", given->online,
                 "Change the routes of comms all the time, as MEDLEY_ONLINE=1 may (right programs)");
  add_json(*soak, given->json, "the counts and failures");
  soak->add_option("--progress-to", given->progress_to)->group("");
}

}  // namespace medley::cli
