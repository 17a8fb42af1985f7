// How a context handles the messages of its control thread: lost ranks, failures of comms, and status queries.
//
// Two sides. On the control thread (on_message, on_gone, on_tick, check_call) nothing waits: it holds no comm, takes no
// lock of the engine, and calls no backend and no user callback; it answers from the status board and posts the rest.
// On the engine's threads (act_on_events and what it calls) comms fail and backends learn of lost ranks.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>

#include "comm/agree_on_backends.hpp"
#include "comm/context_state.hpp"
#include "engine/diagnosis.hpp"

namespace medley::core {
namespace {

using nlohmann::json;
using std::chrono::steady_clock;
using namespace std::chrono_literals;

// A rank that died has published what it had; receiving it may take some polls.
constexpr auto loss_grace = 50ms;
// A rank that left in order has delivered everything; an operation that still waits for it after this long will never
// complete.
constexpr auto leave_grace = 1s;
constexpr auto answer_limit = 400ms;  // for ranks that are alive; a stopped one never answers
// A rank that waits in Medley polls every 20 ms at least.
constexpr auto stuck_after = 1s;

// Kinds of messages between control threads.
constexpr const char* comm_failed = "failed";
constexpr const char* size_report = "sizes";
constexpr const char* collective_called = "call";   // check mode: to the comm's first rank
constexpr const char* collective_agreed = "alike";  // and from there
constexpr const char* status_query = "ask";
constexpr const char* status_answer = "answer";

/// One line on stderr, dropped if its reader is stuck: the control thread never blocks.
void print_notice(const std::string& line) {
  const std::string text = fmt::format("medley: {}\n", line);
  pollfd file{STDERR_FILENO, POLLOUT, 0};
  if (text.size() > PIPE_BUF || poll(&file, 1, 0) != 1) return;
  static_cast<void>(write(STDERR_FILENO, text.data(), text.size()) == 0);
}

int member_of(const CommState& comm, int world_rank) {
  const auto at = std::find(comm.world_ranks.begin(), comm.world_ranks.end(), world_rank);
  return at == comm.world_ranks.end() ? -1 : static_cast<int>(at - comm.world_ranks.begin());
}

control::Message failure_notice(const std::string& comm, const std::vector<int>& members, int by, const Error& why) {
  return {comm_failed, json{{"comm", comm},
                            {"kind", static_cast<int>(why.kind())},
                            {"what", why.what()},
                            {"ranks", why.context().ranks},
                            {"by", by},
                            {"members", members}}
                           .dump()};
}

}  // namespace

void ContextState::listen_for_control() {
  if (size == 1) return;
  const bool one_host =
      std::all_of(hosts.begin(), hosts.end(), [&](const std::string& host) { return host == hosts[0]; });
  control_ = std::make_unique<control::Control>(rank, size, one_host);
}

void ContextState::start_control(const std::vector<OpenedBackends>& opened) {
  if (!control_) return;
  std::vector<control::Endpoint> endpoints;
  for (const OpenedBackends& one : opened) endpoints.push_back(control::Endpoint::from_text(one.control));
  engine->set_hooks({[this](const CommState& comm, const Error& why) { announce_failure(comm, why); },
                     [this](const CommState& comm, const Operation& waiting) { return diagnose_stall(comm, waiting); },
                     [this](const CommState& comm, const Operation& operation) { ask_checker(comm, operation); },
                     &events_, [this] { act_on_events(); }});
  polled_ = steady_clock::now();
  const auto on_message_or_nonsense = [this](int from, const control::Message& message) {
    try {
      on_message(from, message);
    } catch (const json::exception&) {  // from a rank of another version: not understood here
    }
  };
  control_->start(std::move(endpoints), opened[0].token,
                  {on_message_or_nonsense, [this](int lost, const std::string& how) { on_gone(lost, how); },
                   [this](int left) { on_gone(left, ""); }, [this] { on_tick(); }, print_notice},
                  control::DetectorLimits::from([](const char* name) { return std::getenv(name); }));
}

std::shared_ptr<CommState> ContextState::find_comm_locked(const std::string& name) const {
  for (const auto& weak : comms_) {
    if (auto comm = weak.lock(); comm && comm->name == name) return comm;
  }
  return nullptr;
}

std::shared_ptr<CommState> ContextState::find_comm(const std::string& name) {
  const std::lock_guard lock(comms_mutex_);
  return find_comm_locked(name);
}

/// The comm; null while it is still being made here, and the error is kept for it.
std::shared_ptr<CommState> ContextState::find_comm_for(const std::string& name, const Error& error) {
  const std::lock_guard lock(comms_mutex_);
  auto comm = find_comm_locked(name);
  if (!comm) failed_early_.emplace(name, error);
  return comm;
}

void ContextState::on_gone(int world_rank, const std::string& how) {
  if (!how.empty() && announces_losses && !std::exchange(announced_loss_, true)) {
    print_notice(fmt::format("rank {}: rank {} was lost: {}", rank, world_rank, how));
  }
  any_gone_ = true;
  events_.post(RankGone{world_rank, how});
}

void ContextState::on_tick() {
  if (any_gone_ && !events_.any()) events_.post(LookForGone{});
  compare_message_sizes();
  const std::uint64_t polls = engine->board().polls();
  if (polls != polls_seen_) {
    polls_seen_ = polls;
    polled_ = steady_clock::now();
  }
}

/// On any of the engine's threads, without its lock. Two may run at the same time; no event depends on another.
void ContextState::act_on_events() {
  for (const ControlEvent& event : events_.take()) {
    if (const auto* gone = std::get_if<RankGone>(&event)) {
      note_gone(*gone);
    } else if (const auto* failed = std::get_if<CommFailed>(&event)) {
      if (const auto comm = find_comm_for(failed->comm, failed->why)) engine->fail_from_peer(*comm, failed->why);
    } else if (const auto* agreed = std::get_if<CollectiveAgreed>(&event)) {
      if (const auto comm = find_comm(agreed->comm)) engine->allow_start(*comm, agreed->sequence);
    } else {
      look_for_gone();
    }
  }
}

void ContextState::note_gone(const RankGone& event) {
  {
    const std::lock_guard lock(gone_mutex_);
    gone_[event.world_rank] = {event.how, steady_clock::now()};
  }
  if (event.how.empty()) return;
  std::vector<Backend*> all;
  for (const Ready& ready : backends_) all.push_back(ready.backend.get());
  engine->rank_lost(event.world_rank, all);
}

void ContextState::look_for_gone() {
  std::vector<std::shared_ptr<CommState>> comms;
  {
    const std::lock_guard lock(comms_mutex_);
    for (const auto& weak : comms_) {
      if (auto comm = weak.lock()) comms.push_back(std::move(comm));
    }
  }
  std::map<int, Gone> all_gone;
  {
    const std::lock_guard lock(gone_mutex_);
    all_gone = gone_;
  }
  for (const auto& [world_rank, gone] : all_gone) {
    const bool lost = !gone.how.empty();
    if (steady_clock::now() - gone.since < (lost ? loss_grace : leave_grace)) continue;
    for (const auto& comm : comms) {
      const int member = member_of(*comm, world_rank);
      if (member < 0 || comm->size == 1 || (!lost && !engine->awaits(*comm, member))) continue;
      const std::string who = member == world_rank ? fmt::format("rank {}", member)
                                                   : fmt::format("rank {} (rank {} of the world)", member, world_rank);
      engine->fail_from_peer(*comm, Error(ErrorKind::rank_lost,
                                          lost ? fmt::format("{} was lost: {}", who, gone.how)
                                               : fmt::format("{} has left the job though it is awaited", who),
                                          {.ranks = {member}}));
    }
  }
}

void ContextState::announce_failure(const CommState& comm, const Error& why) {
  if (!control_ || comm.size == 1) return;
  control_->send(control::Control::everyone, failure_notice(comm.name, comm.world_ranks, comm.rank, why));
}

void ContextState::ask_checker(const CommState& comm, const Operation& operation) {
  Fingerprint made = fingerprint_of(operation.call, comm.size, operation.lane->name);
  if (operation.fusion) {
    made.call += fmt::format(", {} fused tensors of layout {:016x}", operation.fusion->tensors().size(),
                             operation.fusion->layout());
  }
  const json call{{"comm", comm.name},         {"sequence", operation.sequence},
                  {"rank", comm.rank},         {"size", comm.size},
                  {"call", made.call},         {"route", made.route},
                  {"ranks", comm.world_ranks}, {"before", engine->note_issue(operation)}};
  control_->send(comm.world_ranks[0], {collective_called, call.dump()});
}

/// On the comm's first rank: if all agree, they may start; a difference fails the comm on every rank, this one
/// included.
void ContextState::check_call(const json& call) {
  const std::string name = call["comm"];
  const auto verdict = checker_.hear(name, call["sequence"], call["rank"], call["size"], {call["call"], call["route"]},
                                     call["before"].get<IssuedBefore>());
  if (!verdict) return;
  if (verdict->agreed) {
    for (int world_rank : call["ranks"].get<std::vector<int>>()) {
      control_->send(world_rank, {collective_agreed, json{{"comm", name}, {"sequence", call["sequence"]}}.dump()});
    }
    return;
  }
  checker_.forget(name);
  const Error different(ErrorKind::mismatch, verdict->difference, {.ranks = verdict->ranks});
  control_->send(control::Control::everyone, failure_notice(name, call["ranks"], 0, different));
  events_.post(CommFailed{name, different});
}

/// A difference fails the comm on every rank.
void ContextState::fail_for_sizes(const CommStatus& comm, const MessageSizes::Difference& difference) {
  const Error different = size_error(difference, comm.rank);
  control_->send(control::Control::everyone, failure_notice(comm.name, comm.world_ranks, comm.rank, different));
  events_.post(CommFailed{comm.name, different});
}

/// Sends the receivers what this rank has sent on comms with exact sizes, and compares what other ranks reported.
/// Besides the control thread, a rank whose deadline has passed calls it.
void ContextState::compare_message_sizes() {
  for (const auto& comm : engine->board().comms()) {
    if (!comm->message_sizes) continue;
    for (const MessageSizes::Report& report : comm->message_sizes->due()) {
      const int to = comm->world_ranks[static_cast<std::size_t>(report.channel.peer)];
      const json body{{"comm", comm->name},        {"rank", comm->rank},
                      {"tag", report.channel.tag}, {"memory", static_cast<int>(report.channel.memory)},
                      {"count", report.count},     {"sum", report.sum},
                      {"last", report.last}};
      if (to == rank) {
        on_size_report(rank, body);
      } else {
        control_->send(to, {size_report, body.dump()});
      }
    }
    if (const auto different = comm->message_sizes->compare_heard()) fail_for_sizes(*comm, *different);
  }
}

void ContextState::on_size_report(int from, const json& body) {
  const auto comm = engine->board().find(body["comm"].get<std::string>());
  const int sender = body["rank"];
  if (!comm || !comm->message_sizes || sender < 0 || static_cast<std::size_t>(sender) >= comm->world_ranks.size() ||
      comm->world_ranks[static_cast<std::size_t>(sender)] != from) {
    return;  // it is reported again: the comm may not be made here yet
  }
  const MessageSizes::Channel channel{
      .peer = comm->rank, .tag = body["tag"], .send = true, .memory = static_cast<Memory>(body["memory"].get<int>())};
  const auto different = comm->message_sizes->compare(sender, {channel, body["count"], body["sum"], body["last"]});
  if (different) fail_for_sizes(*comm, *different);
}

void ContextState::on_message(int from, const control::Message& message) {
  const json body = json::parse(message.body, nullptr, false);
  if (body.is_discarded() || !body.contains("comm")) return;
  if (message.kind == comm_failed) {
    Error reported(static_cast<ErrorKind>(body["kind"].get<int>()),
                   fmt::format("rank {} says: {}", body["by"].get<int>(), body["what"].get<std::string>()),
                   {.ranks = body["ranks"]});
    const auto members = body["members"].get<std::vector<int>>();
    if (std::find(members.begin(), members.end(), rank) == members.end()) return;
    events_.post(CommFailed{body["comm"], std::move(reported)});
  } else if (message.kind == size_report) {
    on_size_report(from, body);
  } else if (message.kind == collective_called) {
    check_call(body);
  } else if (message.kind == collective_agreed) {
    events_.post(CollectiveAgreed{body["comm"], body["sequence"]});
  } else if (message.kind == status_query) {
    compare_message_sizes();  // what it finds arrives before the answer
    json answer{{"comm", body["comm"]}, {"question", body["question"]}};
    answer["status"] = engine->board().status(body["comm"]);
    const std::chrono::duration<double> unpolled = steady_clock::now() - polled_;
    if (unpolled > stuck_after) answer["status"]["unpolled_s"] = unpolled.count();
    control_->send(from, {status_answer, answer.dump()});
  } else if (message.kind == status_answer) {
    const std::lock_guard lock(answers_mutex_);
    const auto open = answers_.find(body["question"]);
    if (open == answers_.end()) return;
    open->second[from] = body["status"];
    answered_.notify_all();
  }
}

Diagnosis ContextState::diagnose_stall(const CommState& comm, const Operation& waiting) {
  compare_message_sizes();
  std::string query;
  {
    const std::lock_guard lock(answers_mutex_);
    query = fmt::format("{}.{}", rank, ++queries_);
    answers_[query];
  }
  std::map<int, json> by_member;
  std::size_t asked = 0;
  for (int member = 0; member < comm.size; ++member) {
    const int other = comm.world_ranks[static_cast<std::size_t>(member)];
    const auto standing = control_->standing(other);
    if (standing == control::Control::Standing::present) {
      control_->send(other, {status_query, json{{"comm", comm.name}, {"question", query}}.dump()});
      ++asked;
    } else {
      by_member[member] = {{"gone", standing == control::Control::Standing::left ? "has left the job" : "was lost"}};
    }
  }
  std::unique_lock lock(answers_mutex_);
  answered_.wait_for(lock, answer_limit, [&] { return answers_[query].size() == asked; });
  for (auto& [world_rank, status] : answers_[query]) by_member[member_of(comm, world_rank)] = std::move(status);
  answers_.erase(query);
  lock.unlock();
  return diagnose(comm.name, comm.size, waiting.collective() ? waiting.sequence : 0, by_member);
}

}  // namespace medley::core
