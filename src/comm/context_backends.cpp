// Selects a context's backends: those that every rank can use. Ranks exchange what they lack before any backend is made
// and again after, so that all of them continue with the same ones or fail with the same message.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <medley/sdk/device.hpp>
#include <medley/sdk/launcher_cores.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/split.hpp"
#include "bootstrap/host.hpp"
#include "bootstrap/proof.hpp"
#include "bootstrap/rendezvous.hpp"
#include "comm/agree_on_backends.hpp"
#include "comm/backend_loader.hpp"
#include "comm/context_state.hpp"
#include "comm/context_table.hpp"
#include "comm/needed_backends.hpp"
#include "compress/codec.hpp"

namespace medley::core {
namespace {

using nlohmann::json;

/// Those that the program or the environment names; "auto" among them.
std::vector<std::string> listed_backends(const ContextOptions& options) {
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
  std::string text = usable.empty() ? "none is available" : fmt::format("available: {}", fmt::join(usable, ", "));
  if (!lacking.empty()) text += fmt::format("; not available: {}", fmt::join(lacking, ", "));
  return text;
}

/// Where rules compress, ranks whose builds have different codecs would choose differently.
std::string rules_to_compare(const Rules& rules) {
  std::string text = rules.text(), lacking;
  const bool compresses = std::any_of(rules.list().begin(), rules.list().end(), [](const Rules::Rule& rule) {
    return compress::is_compressed(rule.choice.algorithm);
  });
  for (const compress::Kind kind : {compress::Kind::lz4, compress::Kind::zstd, compress::Kind::zfp_rate}) {
    if (!compress::why_unavailable(kind).empty()) lacking += ' ' + compress::Spec{kind, 0}.text();
  }
  return compresses && !lacking.empty() ? fmt::format("{} (a build without{})", text, lacking) : text;
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
  throw Error(ErrorKind::invalid,
              fmt::format("MEDLEY_ONLINE={}: 1 measures routes in the running job and 0 does not", named));
}

/// Rank 0's value names the job in the files of all ranks.
std::string new_job_name() { return fmt::format("{:x}-{}", clock_ns(CLOCK_REALTIME), getpid()); }

std::vector<std::string> names_to_try(const std::vector<std::string>& wanted) {
  std::vector<std::string> names = with_halves(wanted);
  if (names.empty()) {
    for (const auto& known : known_backends()) names.push_back(known->name());
  }
  return names;
}

/// Rank 0 opens its trace first: all ranks learn whether this job may use the folder before any of them writes there.
std::unique_ptr<Recorder> open_first_trace(int rank, int size, std::string& problem) {
  if (rank != 0 || !traces()) return nullptr;
  try {
    return std::make_unique<Recorder>(RecordedRank{rank, size, {}});
  } catch (const Error& error) {
    problem = error.what();
    return nullptr;
  }
}

RankOffer own_offer(const ContextOptions& options, const Rules& rules, const std::vector<std::string>& listed,
                    const std::vector<std::string>& names, const FoundTable& found) {
  RankOffer offer{.host = host_identity(),
                  .kernel = kernel_identity(),
                  .cores = core_mask(),
                  .wanted = listed,
                  .job = new_job_name(),
                  .rules = rules_to_compare(rules),
                  .table = offer_of(found),
                  .cuda = why_no_device(),
                  .check = wants_check(),
                  .hierarchical = options.hierarchical,
                  .exact = options.exact,
                  .online = online_mode(options)};
  for (const std::string& name : names) {
    KnownBackend* const known = find_backend(name);
    offer.reasons[name] = known ? known->unavailable() : "there is no such backend";
    if (known && known->plugin() && known->plugin()->last_choice) offer.last_choices.insert(name);
  }
  return offer;
}

/// One round of exchange: every rank's answer, by rank.
template <class Answer>
std::vector<Answer> exchange_answers(const ContextState& context, const std::string& about, const Answer& mine,
                                     Deadline until) {
  std::vector<Answer> answers;
  // Names of files and hosts, and what went wrong with them, need not be UTF-8.
  const std::string own = mine.to_json().dump(-1, ' ', false, json::error_handler_t::replace);
  for (const std::string& text : exchange(*context.store, about, context.rank, context.size, own, until)) {
    try {
      answers.push_back(Answer::from_json(json::parse(text)));
    } catch (const json::exception& error) {
      throw Error(
          ErrorKind::mismatch,
          fmt::format("rank {} describes its backends in a form that rank {} cannot read ({}); run one version of "
                      "Medley on all ranks",
                      answers.size(), context.rank, error.what()),
          {.ranks = {static_cast<int>(answers.size())}});
    }
  }
  return answers;
}

[[noreturn]] void refuse(const std::string& name, const std::string& reason, const std::vector<int>& ranks) {
  throw Error(ErrorKind::unavailable,
              fmt::format("backend {} cannot be used: {}; {}", name, reason, what_there_is_but(name)),
              {.backend = name, .ranks = ranks});
}

}  // namespace

void ContextState::make_backends(const ContextOptions& options) {
  const Deadline until = deadline_after(deadline);
  const std::vector<std::string> listed = listed_backends(options);
  const bool only_chosen = listed == std::vector<std::string>{"auto"};
  const std::vector<std::string> wanted = only_chosen ? std::vector<std::string>{} : listed;
  FoundTable found = find_table(options.table);
  RankOffer mine = own_offer(options, rules, listed, names_to_try(wanted), found);
  std::unique_ptr<Recorder> recorder = open_first_trace(rank, size, mine.trace);
  const std::vector<RankOffer> offers = exchange_answers(*this, "backends", mine, until);
  compare_offers(offers);
  agree_on_table(found, tables_of(offers));
  checking = std::any_of(offers.begin(), offers.end(), [](const RankOffer& offer) { return offer.check; });
  online = agreed_online_mode(offers);
  if (records() && !recorder) recorder = std::make_unique<Recorder>(RecordedRank{rank, size, offers[0].job});
  if (recorder) engine->record_to(std::move(recorder));
  why_no_cuda_ = why_not_all_have_cuda(offers);
  for (const RankOffer& offer : offers) hosts.push_back(offer.host);
  device = options.device >= 0 ? options.device : default_device();
  const BackendParams params = params_from(offers, until);
  BackendChoice choice{.names = names_to_try(wanted), .named = !wanted.empty()};
  if (!choice.named) {
    choice.names = names_of_all(offers, known_backends().front()->name());
    choice.needed = needed_backends(found, rules, facts_of(offers, choice.names, only_chosen));
  }
  listen_for_control();
  std::map<std::string, std::unique_ptr<Backend>> made;
  const OpenedBackends own = open_backends(choice, found, offers, params, made);
  const std::vector<OpenedBackends> opened = exchange_answers(*this, "abilities", own, until);
  table_info = settle_table(found, first_misfit(opened));
  table = std::move(found.table);
  agree_on_opened(opened, choice.named, made);
  const bool hierarchical =
      std::all_of(offers.begin(), offers.end(), [](const RankOffer& offer) { return offer.hierarchical; });
  make_all_of_two(hierarchical                             ? with_every_pair(wanted)
                  : !choice.named && choice.needed.empty() ? default_pair()
                                                           : wanted);
  start_control(opened);
  check_rules(rules);
  note_job();
}

/// Ranks of a host take its devices round-robin. Under a launcher that shows each rank one device, that is device 0.
int ContextState::default_device() const { return why_no_device().empty() ? local_rank() % device_count() : 0; }

BackendParams ContextState::params_from(const std::vector<RankOffer>& offers, Deadline until) const {
  BackendParams params{.rank = rank,
                       .size = size,
                       .device = device,
                       .hosts = hosts,
                       .cores = 1,
                       .device_times = traces(),
                       .store = store,
                       .deadline = until};
  const RankOffer& mine = offers[static_cast<std::size_t>(rank)];
  std::vector<std::string> here, machine;
  for (const RankOffer& offer : offers) {
    if (offer.host == mine.host) here.push_back(offer.cores);
    if (offer.kernel == mine.kernel) machine.push_back(offer.cores);
  }
  params.cores = share_of_cores(here, machine);
  return params;
}

/// Makes those that all ranks can use and the job needs. `infos` says of each whether it was made, or why not.
OpenedBackends ContextState::open_backends(const BackendChoice& choice, const FoundTable& found,
                                           const std::vector<RankOffer>& offers, const BackendParams& params,
                                           std::map<std::string, std::unique_ptr<Backend>>& made) {
  OpenedBackends opened{.control = control_ ? control_->endpoint().to_text() : "",
                        .token = rank == 0 ? random_token() : ""};
  std::vector<int> lacking;
  for (const std::string& name : choice.names) {
    std::string reason = who_lacks(offers, name, lacking);
    if (!reason.empty() && choice.named) refuse(name, reason, lacking);
    if (reason.empty() && !choice.needed.empty() && !choice.needed.contains(name)) {
      reason = fmt::format("the route table {} never chooses it; list it among the backends to open it", found.path);
    }
    infos.push_back({.name = name, .version = {}, .available = false, .reason = reason});
    if (!reason.empty()) continue;
    opened.reasons[name] = create(name, params, made[name]);
    if (made[name]) opened.abilities[name] = Capabilities(*made[name]).to_text();
  }
  opened.misfit = misfit_here(found, made);
  return opened;
}

/// What is needed to repeat a run.
void ContextState::note_job() {
  json job{{"rules", rules.text()}, {"table", table_info.hash}, {"backends", json::object()}};
  for (const BackendInfo& info : infos) {
    if (info.available) job["backends"][info.name] = info.version;
  }
  if (engine->recorder()) engine->recorder()->note(NoteKind::job, job.dump());
}

/// Makes a backend, or returns what went wrong. A library may throw anything.
std::string ContextState::create(const std::string& name, const BackendParams& params, std::unique_ptr<Backend>& made) {
  try {
    BackendParams own = params;
    own.store = std::make_shared<PrefixStore>(store, fmt::format("backend/{}/", name));
    const UnboundThreadScope inherited;  // threads that the library starts inherit it
    made = find_backend(name)->plugin()->create(own);
    return made ? std::string() : std::string("its plugin made none");
  } catch (const std::exception& error) {
    return fmt::format("it failed to start: {}", error.what());
  } catch (...) {
    return "it failed to start";
  }
}

/// Keeps those that every rank has made, with the capabilities that all of them have.
void ContextState::agree_on_opened(const std::vector<OpenedBackends>& opened, bool named,
                                   std::map<std::string, std::unique_ptr<Backend>>& made) {
  std::vector<int> lacking;
  for (BackendInfo& info : infos) {
    if (!info.reason.empty()) continue;
    info.reason = who_lacks(opened, info.name, lacking);
    if (!info.reason.empty() && named) refuse(info.name, info.reason, lacking);
    if (!info.reason.empty()) continue;
    Capabilities common = Capabilities::from_text(opened[0].abilities.at(info.name));
    for (const OpenedBackends& one : opened) common.keep_common(Capabilities::from_text(one.abilities.at(info.name)));
    info.version = made[info.name]->version();
    info.available = true;
    const auto note =
        static_cast<std::uint8_t>(engine->recorder() ? engine->recorder()->note(NoteKind::backend, info.name) : 0);
    backends_.push_back({std::move(made[info.name]), common, note});
  }
}

}  // namespace medley::core
