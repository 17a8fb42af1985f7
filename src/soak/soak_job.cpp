#include "soak/soak_job.hpp"

#include <algorithm>
#include <cstdlib>
#include <medley/error.hpp>
#include <nlohmann/json.hpp>

#include "comm/backend_loader.hpp"
#include "soak/ranks_job.hpp"

namespace medley::soak {
namespace {

constexpr std::int64_t right_per_wrong = 50;
constexpr double wrong_share_of_time = 0.2;  // where the time is limited; a wrong program takes seconds
// What wrong programs are given to be found out; the mistakes show at once, a stopped rank after this.
constexpr auto invalid_deadline = std::chrono::seconds(3);

const char* name_of(Failure::What what) { return what == Failure::What::hang ? "hang" : "mismatch"; }

}  // namespace

std::int64_t SoakResult::hangs() const {
  return std::count_if(valid.failures.begin(), valid.failures.end(),
                       [](const Failure& failure) { return failure.what == Failure::What::hang; });
}

std::int64_t SoakResult::mismatches() const { return static_cast<std::int64_t>(valid.failures.size()) - hangs(); }

std::vector<std::string> backends_or_all(std::vector<std::string> backends) {
  if (!backends.empty()) return backends;
  for (const auto& known : core::known_backends()) {
    if (known->unavailable().empty()) backends.push_back(known->name());
  }
  return backends;
}

std::string program_text(const Failure& failure, int ranks, const GenerateOptions& options) {
  const Program whole = generate(failure.program, ranks, options);
  return to_text(failure.left_out.empty() ? whole : without(whole, failure.left_out));
}

SoakResult run_soak(const SoakRequest& request, const SoakHooks& hooks) {
  SoakOptions options{.ranks = request.ranks, .work = request.work};
  options.work.generate.backends = backends_or_all(request.work.generate.backends);
  SoakResult result{.ranks = request.ranks,
                    .seed = request.work.first,
                    .backends = options.work.generate.backends,
                    .valid = {},
                    .invalid = {}};
  if (request.programs != Programs::valid) {
    WorkerOptions wrong = options.work;
    if (request.programs == Programs::both) wrong.programs /= right_per_wrong;
    wrong.deadline = invalid_deadline;
    if (request.programs == Programs::both) {
      wrong.seconds *= wrong_share_of_time;
      options.work.seconds -= wrong.seconds;
    }
    result.invalid = soak_invalid(request.ranks, wrong, hooks.invalid_failed);
    result.invalid_asked = wrong.seconds > 0 ? result.invalid.programs : wrong.programs;
    hooks.invalid_done(result);
  }
  if (request.programs == Programs::invalid) options.work.programs = 0;
  result.valid = soak(options, hooks.progress, hooks.failed);
  return result;
}

nlohmann::ordered_json to_json(const SoakResult& result) {
  nlohmann::ordered_json value{{"ranks", result.ranks},
                               {"seed", result.seed},
                               {"backends", result.backends},
                               {"programs", result.valid.programs},
                               {"mismatches", result.mismatches()},
                               {"hangs", result.hangs()}};
  value["failures"] = nlohmann::ordered_json::array();
  for (const Failure& failure : result.valid.failures) {
    value["failures"].push_back({{"program", failure.program},
                                 {"kind", name_of(failure.what)},
                                 {"text", failure.text},
                                 {"without", failure.left_out}});
  }
  value["invalid"] = {{"programs", result.invalid.programs}, {"wrong", result.invalid.failures.size()}};
  for (const InvalidFailure& failure : result.invalid.failures) {
    value["invalid"]["failures"].push_back(
        {{"program", failure.program}, {"plan", failure.plan}, {"text", failure.text}});
  }
  return value;
}

RankResult soak_on_rank(const WorkerOptions& options, Programs programs, int rank, int ranks) {
  RankResult result;
  if (const char* path = std::getenv(report_variable)) {
    const Report report{std::string(path)};
    if (programs == Programs::invalid) work_invalid(options, ranks, report[rank]);
    result.tally = work(options, &report[rank]);
    return result;
  }
  try {
    result.tally = work(options, nullptr);
  } catch (const Error& error) {
    result.problem = error.what();
    ++(error.kind() == ErrorKind::timeout ? result.tally.hangs : result.tally.mismatches);
  }
  return result;
}

}  // namespace medley::soak
