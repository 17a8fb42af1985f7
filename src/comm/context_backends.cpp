// Selects a context's backends: those that every rank can use. Ranks exchange what they lack before any backend is made and again
// after, so that all of them continue with the same ones or fail with the same message.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <medley/sdk/launcher_cores.hpp>
#include <medley/sdk/device.hpp>
#include <nlohmann/json.hpp>
#include <set>

#include "base/ranks_text.hpp"
#include "base/split.hpp"
#include "bootstrap/host.hpp"
#include "bootstrap/proof.hpp"
#include "bootstrap/rendezvous.hpp"
#include "compress/codec.hpp"
#include "comm/context_state.hpp"
#include "comm/context_table.hpp"
#include "comm/backend_loader.hpp"
#include "comm/needed_backends.hpp"

namespace medley::core {
namespace {

using nlohmann::json;

std::vector<std::string> wanted_backends(const ContextOptions& options) {
  if (!options.backends.empty()) return options.backends;
  const char* text = std::getenv("MEDLEY_BACKENDS");
  return split(text ? text : "", ',');
}

/// What this machine has, for an error about something it lacks.
std::string what_there_is_but(const std::string& missing) {
  std::vector<std::string> usable, lacking;
  for (const auto& known : known_backends()) {
    if (known->name() == missing) continue;
    const std::string reason = known->unavailable();
    if (reason.empty()) {
      usable.push_back(known->name());
    } else {
      lacking.push_back(fmt::format("{} ({})", known->name(), reason));
    }
  }
  std::string text =
      usable.empty() ? "none is available" : fmt::format("available: {}", fmt::join(usable, ", "));
  if (!lacking.empty()) text += fmt::format("; not available: {}", fmt::join(lacking, ", "));
  return text;
}

/// The ranks that gave a reason, and the first reason; empty when none did.
std::string who_lacks(const std::vector<json>& answers, const std::string& name, std::vector<int>& ranks) {
  std::string reason;
  ranks.clear();
  for (std::size_t r = 0; r < answers.size(); ++r) {
    const json& given = answers[r]["reasons"];
    const std::string why =
        given.contains(name) ? given[name].get<std::string>() : "it is not installed there";
    if (why.empty()) continue;
    if (reason.empty()) reason = why;
    ranks.push_back(static_cast<int>(r));
  }
  if (reason.empty() || ranks.size() == answers.size()) return reason;
  return fmt::format("not on {}: {}", ranks_text(ranks), reason);
}

/// Rules decide routes, so ranks with different rules would wait for each other for ever.
void compare_rules(const std::vector<json>& answers) {
  for (std::size_t r = 1; r < answers.size(); ++r) {
    const std::string here = answers[r]["rules"], first = answers[0]["rules"];
    if (here == first) continue;
    throw Error(ErrorKind::mismatch,
                fmt::format("rank 0 has the rules \"{}\" but rank {} has \"{}\"; all ranks must have the same", first, r, here),
                {.ranks = {0, static_cast<int>(r)}});
  }
}

/// Sizes decide the routes of messages only if all ranks say that they may.
void compare_exactness(const std::vector<json>& answers) {
  for (std::size_t r = 1; r < answers.size(); ++r) {
    const bool here = answers[r]["exact"], first = answers[0]["exact"];
    if (here == first) continue;
    throw Error(ErrorKind::mismatch,
                fmt::format("rank {} declares that messages have exact sizes but rank {} does not; all ranks must declare the same",
                            first ? 0 : r, first ? r : 0),
                {.ranks = {0, static_cast<int>(r)}});
  }
}

/// Where rules compress, ranks whose builds have different codecs would choose differently.
std::string rules_to_compare(const Rules& rules) {
  std::string text = rules.text(), lacking;
  const bool compresses = std::any_of(rules.list().begin(), rules.list().end(),
                                      [](const Rules::Rule& rule) { return compress::is_compressed(rule.choice.algorithm); });
  for (const compress::Kind kind : {compress::Kind::lz4, compress::Kind::zstd, compress::Kind::zfp_rate}) {
    if (!compress::why_unavailable(kind).empty()) lacking += ' ' + compress::Spec{kind, 0}.text();
  }
  return compresses && !lacking.empty() ? fmt::format("{} (a build without{})", text, lacking) : text;
}

void compare_wishes(const std::vector<json>& answers) {
  for (std::size_t r = 1; r < answers.size(); ++r) {
    const json &here = answers[r]["wanted"], &first = answers[0]["wanted"];
    if (here == first) continue;
    throw Error(
        ErrorKind::mismatch,
        fmt::format("rank 0 asks for backends {} but rank {} for {}; all ranks must name the same, in the "
                    "same order",
                    first.dump(), r, here.dump()),
        {.ranks = {0, static_cast<int>(r)}});
  }
}

/// What decides which backends to open, from every rank's answer.
JobFacts facts_of(const std::vector<json>& answers, const std::vector<std::string>& names, bool only_chosen) {
  JobFacts job{.only_chosen = only_chosen, .names = names};
  std::set<std::string> hosts;
  for (const json& answer : answers) {
    hosts.insert(answer["host"].get<std::string>());
    job.needs_all = job.needs_all || answer["cuda"].get<std::string>().empty() || answer["hierarchical"].get<bool>();
  }
  job.several_hosts = hosts.size() > 1;
  job.all_alone = hosts.size() == answers.size();
  job.everywhere = [&answers](const std::string& name) {
    std::vector<int> ignored;
    return who_lacks(answers, name, ignored).empty();
  };
  return job;
}

/// MEDLEY_CHECK=1 or 0; without it, debug builds check.
bool wants_check() {
  const char* text = std::getenv("MEDLEY_CHECK");
#ifdef NDEBUG
  return text && std::string_view(text) == "1";
#else
  return !text || std::string_view(text) != "0";
#endif
}

/// MEDLEY_ONLINE=1 or the option; "shuffle", for tests, changes routes all the time.
std::string online_mode(const ContextOptions& options) {
  const char* text = std::getenv("MEDLEY_ONLINE");
  const std::string_view named = text ? text : "";
  if (named.empty() || named == "0") return options.online ? "1" : "";
  if (named == "1" || named == "shuffle") return std::string(named);
  throw Error(ErrorKind::invalid, fmt::format("MEDLEY_ONLINE={}: 1 measures routes in the running job and 0 does not", named));
}

/// What any rank wants, all do.
std::optional<OnlineRoutes::Mode> agreed_online_mode(const std::vector<json>& answers) {
  std::optional<OnlineRoutes::Mode> mode;
  for (const json& answer : answers) {
    if (answer["online"] == "1" && !mode) mode = OnlineRoutes::Mode::measure;
    if (answer["online"] == "shuffle") mode = OnlineRoutes::Mode::shuffle;
  }
  return mode;
}

/// Rank 0's value names the job in the files of all ranks.
std::string new_job_name() {
  return fmt::format("{:x}-{}", clock_ns(CLOCK_REALTIME), getpid());
}

[[noreturn]] void refuse(const std::string& name, const std::string& reason, const std::vector<int>& ranks) {
  throw Error(ErrorKind::unavailable,
              fmt::format("backend {} cannot be used: {}; {}", name, reason, what_there_is_but(name)),
              {.backend = name, .ranks = ranks});
}

}  // namespace

/// One round of exchange: every rank's answer, by rank.
std::vector<nlohmann::json> ContextState::ask_all(const std::string& about, const nlohmann::json& mine,
                                                  Deadline until) {
  std::vector<json> answers;
  for (const std::string& text : exchange(*store, about, rank, size, mine.dump(), until)) {
    answers.push_back(json::parse(text));
  }
  return answers;
}

void ContextState::make_backends(const ContextOptions& options) {
  const Deadline until = deadline_after(deadline);
  std::vector<std::string> wanted = wanted_backends(options);
  const bool only_chosen = wanted == std::vector<std::string>{"auto"};
  json mine{{"host", host_identity()}, {"kernel", kernel_identity()}, {"wanted", wanted}, {"reasons", json::object()}, {"job", new_job_name()},
            {"rules", rules_to_compare(rules)}, {"check", wants_check()}, {"cores", core_mask()}, {"cuda", why_no_device()},
            {"hierarchical", options.hierarchical}, {"exact", options.exact}, {"online", online_mode(options)}};
  if (only_chosen) wanted.clear();
  std::vector<std::string> names = with_halves(wanted);
  if (names.empty()) {
    for (const auto& known : known_backends()) names.push_back(known->name());
  }
  FoundTable found = find_table(options.table);
  mine["table"] = described(found);
  for (const std::string& name : names) {
    KnownBackend* known = find_backend(name);
    mine["reasons"][name] = known ? known->unavailable() : "there is no such backend";
  }
  // Rank 0 opens its trace first: all ranks learn whether this job may use the folder before any of them writes there.
  std::unique_ptr<Recorder> recorder;
  mine["trace"] = "";
  if (rank == 0 && traces()) {
    try {
      recorder = std::make_unique<Recorder>(RecordedRank{rank, size, {}});
    } catch (const Error& error) {
      mine["trace"] = error.what();
    }
  }
  const std::vector<json> answers = ask_all("backends", mine, until);
  if (const std::string why = answers[0]["trace"]; !why.empty()) throw Error(ErrorKind::system, why);
  compare_wishes(answers);
  compare_rules(answers);
  compare_exactness(answers);
  agree_on_table(found, answers);
  for (const json& answer : answers) checking = checking || answer["check"].get<bool>();
  online = agreed_online_mode(answers);
  if (records() && !recorder) recorder = std::make_unique<Recorder>(RecordedRank{rank, size, answers[0]["job"]});
  if (recorder) engine->record_to(std::move(recorder));
  BackendParams params{
      .rank = rank, .size = size, .device = options.device, .hosts = {}, .cores = 1, .device_times = traces(), .store = store,
      .deadline = until};
  for (const json& answer : answers) {
    if (const std::string why = answer["cuda"]; why_no_cuda_.empty() && !why.empty()) {
      why_no_cuda_ = fmt::format("rank {}: {}", params.hosts.size(), why);
    }
    params.hosts.push_back(answer["host"]);
  }
  hosts = params.hosts;
  std::vector<std::string> here, machine;
  for (const json& answer : answers) {
    if (answer["host"] == mine["host"]) here.push_back(answer["cores"]);
    if (answer["kernel"] == mine["kernel"]) machine.push_back(answer["cores"]);
  }
  params.cores = share_of_cores(here, machine);
  if (wanted.empty()) names = names_of_all(answers);
  const std::set<std::string> needed = wanted.empty() ? needed_backends(found, rules, facts_of(answers, names, only_chosen)) : std::set<std::string>{};

  std::vector<int> lacking;
  listen_for_control();
  json made{{"reasons", json::object()}, {"abilities", json::object()}, {"control", control_ ? control_->endpoint().to_text() : ""},
            {"token", rank == 0 ? random_token() : ""}};
  std::map<std::string, std::unique_ptr<Backend>> mine_made;
  for (const std::string& name : names) {
    std::string reason = who_lacks(answers, name, lacking);
    if (!reason.empty() && !wanted.empty()) refuse(name, reason, lacking);
    if (reason.empty() && !needed.empty() && !needed.contains(name)) {
      reason = fmt::format("the route table {} never chooses it; list it among the backends to open it", found.path);
    }
    infos.push_back({.name = name, .version = {}, .available = false, .reason = reason});
    if (!reason.empty()) continue;
    made["reasons"][name] = create(name, params, mine_made[name]);
    if (mine_made[name]) made["abilities"][name] = Capabilities(*mine_made[name]).to_text();
  }
  made["misfit"] = misfit_here(found, mine_made);
  const std::vector<json> abilities = ask_all("abilities", made, until);
  table_info = settle_table(found, abilities);
  table = std::move(found.table);
  agree_on_made(abilities, !wanted.empty(), mine_made);
  const bool hierarchical = std::all_of(answers.begin(), answers.end(), [](const json& answer) { return answer["hierarchical"].get<bool>(); });
  make_all_of_two(hierarchical ? with_every_pair(wanted) : wanted);
  start_control(abilities);
  check_rules(rules);
  note_job();
}

/// What is needed to repeat a run.
void ContextState::note_job() {
  json job{{"rules", rules.text()}, {"table", table_info.hash}, {"backends", json::object()}};
  for (const BackendInfo& info : infos) {
    if (info.available) job["backends"][info.name] = info.version;
  }
  if (engine->recorder()) engine->recorder()->note(NoteKind::job, job.dump());
}

/// shm first, then by name: the order of preference if the program names no backends.
std::vector<std::string> ContextState::names_of_all(const std::vector<nlohmann::json>& answers) {
  std::map<std::string, bool> seen;
  for (const json& answer : answers) {
    for (const auto& [name, reason] : answer["reasons"].items()) seen[name] = true;
  }
  std::vector<std::string> names{known_backends().front()->name()};
  for (const auto& [name, yes] : seen) {
    if (name != names.front()) names.push_back(name);
  }
  return names;
}

/// Makes a backend, or returns what went wrong. A library may throw anything.
std::string ContextState::create(const std::string& name, const BackendParams& params,
                                 std::unique_ptr<Backend>& made) {
  try {
    BackendParams own = params;
    own.store = std::make_shared<PrefixStore>(store, fmt::format("backend/{}/", name));
    const OnLaunchersCores inherited;  // threads that the library starts inherit it
    made = find_backend(name)->plugin()->create(own);
    return made ? std::string() : std::string("its plugin made none");
  } catch (const std::exception& error) {
    return fmt::format("it failed to start: {}", error.what());
  } catch (...) {
    return "it failed to start";
  }
}

void ContextState::agree_on_made(const std::vector<nlohmann::json>& answers, bool named,
                                 std::map<std::string, std::unique_ptr<Backend>>& made) {
  std::vector<int> lacking;
  for (BackendInfo& info : infos) {
    if (!info.reason.empty()) continue;
    info.reason = who_lacks(answers, info.name, lacking);
    if (!info.reason.empty() && named) refuse(info.name, info.reason, lacking);
    if (!info.reason.empty()) continue;
    Capabilities common = Capabilities::from_text(answers[0]["abilities"][info.name]);
    for (const json& answer : answers)
      common.keep_common(Capabilities::from_text(answer["abilities"][info.name]));
    info.version = made[info.name]->version();
    info.available = true;
    const auto note = static_cast<std::uint8_t>(engine->recorder() ? engine->recorder()->note(NoteKind::backend, info.name) : 0);
    backends_.push_back({std::move(made[info.name]), common, note});
  }
}

}  // namespace medley::core
