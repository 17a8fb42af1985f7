#include <medley/context.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>

#include "bootstrap/environment.hpp"
#include "bootstrap/rendezvous.hpp"
#include "bootstrap/store.hpp"
#include "bootstrap/unknown_variables.hpp"
#include "comm/comm_terms.hpp"
#include "comm/context_state.hpp"
#include "compress/codec.hpp"

namespace medley {
namespace core {
namespace {

/// Of the table where it measured them. The calls that name no backend take the limit of the route of a small
/// all_reduce. All of this is equal on all ranks.
fuse::Limits fuse_limits_of(const CommState& comm, const route::Table* table, const route::Shape& shape) {
  if (comm.size == 1) return {.host = 0, .cuda = 0};  // nothing travels: packing would only cost
  fuse::Limits limits;
  const auto of_lane = [&](const LaneState& lane) {
    return fuse::default_host_limit(comm.size, shape.hosts, lane.inside_host);
  };
  for (const auto& lane : comm.lanes) {
    if (!lane->host) continue;
    const auto measured = table ? table->fusion_limit(Memory::host, shape, lane->name) : std::nullopt;
    limits.of_backend.emplace_back(lane->name, measured.value_or(of_lane(*lane)));
  }
  Call small;
  small.op = Op::all_reduce;
  small.dtype = DType::f32;
  small.in_count = small.out_count = 256;
  if (const Route* const usual = comm.routing.find(small, comm.size)) limits.host = of_lane(*usual->lane);
  if (table) {
    // Where a tuned step takes one library, calls fuse as those that name it do.
    const auto library = [&](Memory memory) {
      return table->step && table->step->memory == memory ? table->step->library : std::string();
    };
    limits.host = table->fusion_limit(Memory::host, shape, library(Memory::host)).value_or(limits.host);
    limits.cuda = table->fusion_limit(Memory::cuda, shape, library(Memory::cuda)).value_or(limits.cuda);
  }
  return limits;
}

std::string text_of_rules(const ContextOptions& options) {
  const char* text = std::getenv("MEDLEY_RULES");
  return options.rules.empty() && text ? text : options.rules;
}

void find_place_in_job(const ContextOptions& options, ContextState& state) {
  const Deadline deadline = deadline_after(options.deadline);
  if (options.rank >= 0 || options.size > 0 || options.store) {
    if (options.size < 1 || options.rank < 0 || options.rank >= options.size) {
      throw Error(
          ErrorKind::invalid,
          fmt::format("a context cannot be rank {} of {}; give size >= 1 and 0 <= rank < size, or neither to ask "
                      "the launcher",
                      options.rank, options.size));
    }
    if (!options.store && options.size > 1) {
      throw Error(ErrorKind::invalid, fmt::format("a context of rank {} of {} needs a store to meet the others; give "
                                                  "one, or leave rank and size to the launcher",
                                                  options.rank, options.size));
    }
    state.rank = options.rank;
    state.size = options.size;
    state.store = options.store ? options.store : make_local_store();
    return;
  }
  const std::optional<Place> place = find_place(process_environment());
  if (!place) {
    state.store = make_local_store();
    return;
  }
  state.rank = place->rank;
  state.size = place->size;
  state.store = connect_store(*place, deadline);
}

/// Where a receive may be larger than its message, a size cannot decide the route of both. Rules of the context apply
/// to all its comms, so they are just skipped on such comms.
void check_sized_rules(const std::string& comm, const Rules& rules, bool exact) {
  for (const Rules::Rule& rule : rules.list()) {
    if (exact || !rule.op || is_collective(*rule.op) || !rule.sized()) continue;
    throw Error(
        ErrorKind::invalid,
        fmt::format(
            "making comm {}: the rules \"{}\" route messages by size, but its receives may be larger than what is sent to "
            "them; declare that sizes are exact (CommOptions::exact)",
            comm, rules.text()),
        {.comm = comm});
  }
}

}  // namespace

ContextState::ContextState(const ContextOptions& options)
    : deadline(options.deadline), announces_losses(options.announce_losses), world_is_exact(options.exact) {
  if (options.deadline <= std::chrono::nanoseconds{0}) {
    throw Error(ErrorKind::invalid,
                fmt::format("ContextOptions::deadline is {} ns; give a time above 0", options.deadline.count()));
  }
  rules = Rules::parse(text_of_rules(options));
  find_place_in_job(options, *this);
  if (rank == 0) warn_of_unknown_variables();
  make_backends(options);
  engine->allow_thread(options.progress_thread != UseThread::never);
  if (options.progress_thread == UseThread::always) engine->start_thread();
}

std::shared_ptr<CommState> ContextState::make_comm(const std::string& name, const std::vector<int>& world_ranks,
                                                   const Rules& own_rules, std::chrono::nanoseconds comm_deadline,
                                                   const CommTraits& traits) {
  const bool exact = traits.exact;
  check_rules(own_rules);
  check_sized_rules(name, own_rules, exact);
  std::shared_ptr<CommState> comm(new CommState, [engine = engine](CommState* gone) { engine->reclaim(gone); });
  comm->name = name;
  comm->world_ranks = world_ranks;
  comm->size = static_cast<int>(world_ranks.size());
  comm->rank = static_cast<int>(std::find(world_ranks.begin(), world_ranks.end(), rank) - world_ranks.begin());
  comm->deadline = comm_deadline;
  comm->exact = exact;
  comm->engine = engine;
  comm->device = device;
  comm->why_no_cuda = why_no_cuda_;
  comm->context = weak_from_this();
  comm->note = engine->note_comm(name, world_ranks);
  make_lanes(*comm);
  comm->checked = checking && comm->size > 1;
  make_routes(*comm, own_rules, traits);
  engine->compare_order_of(*comm);
  register_comm(comm);
  return comm;
}

/// How its operations find their routes, and what that needs: agreed sizes, measured times, fusion.
void ContextState::make_routes(CommState& comm, const Rules& own_rules, const CommTraits& traits) {
  const route::Shape shape = shape_of(comm.world_ranks);
  const RoutingSources sources{own_rules, rules, table ? &*table : nullptr, shape, comm.exact};
  comm.routing = Routing(sources, comm.lanes);
  const bool split =
      comm.exact && (comm.routing.splits_messages(Memory::host) || comm.routing.splits_messages(Memory::cuda));
  if (split && comm.size > 1) comm.message_sizes = std::make_shared<MessageSizes>();
  comm.status = engine->board().add(comm);
  comm.sizes = SizeAgreement::make(comm);
  if (traits.fuse && comm.size > 1) comm.auto_fuse = std::make_unique<AutoFuse>();
  if (online) comm.online = OnlineRoutes::make(comm, sources, *online);
  comm.agrees_on_routes = comm.sizes || comm.online;
  comm.fuse_limits = fuse_limits_of(comm, table ? &*table : nullptr, shape);
  warn_fallback_shape(comm, shape);
}

/// From here on the control thread finds it. It fails at once if another rank aborted it before it was made here.
void ContextState::register_comm(const std::shared_ptr<CommState>& comm) {
  decltype(failed_early_)::node_type early;
  {
    const std::lock_guard lock(comms_mutex_);
    std::erase_if(comms_, [](const auto& weak) { return weak.expired(); });
    comms_.push_back(comm);
    early = failed_early_.extract(comm->name);
  }
  if (early) engine->fail_from_peer(*comm, early.mapped());
}

int ContextState::local_size() const {
  return static_cast<int>(std::count(hosts.begin(), hosts.end(), hosts[static_cast<std::size_t>(rank)]));
}

int ContextState::local_rank() const {
  return static_cast<int>(std::count(hosts.begin(), hosts.begin() + rank, hosts[static_cast<std::size_t>(rank)]));
}

route::Shape ContextState::shape_of(const std::vector<int>& world_ranks) const {
  std::vector<std::string_view> of_each;
  for (int r : world_ranks) of_each.emplace_back(hosts[static_cast<std::size_t>(r)]);
  return route::shape_of(of_each);
}

/// Once per job, by one rank: whoever tuned should know that the table does not cover this comm.
void ContextState::warn_fallback_shape(const CommState& comm, const route::Shape& shape) {
  if (!comm.routing.fallback_shape() || warned_fallback_shape_ || rank != 0) return;
  warned_fallback_shape_ = true;
  fmt::print(stderr,
             "medley: the route table {} has no rows for {} (comm {}); those for {} stand in where it has none\n",
             table_info.path, route::text(shape), comm.name, route::text(*comm.routing.fallback_shape()));
}

void ContextState::check_rules(const Rules& checked) const {
  for (const Rules::Rule& rule : checked.list()) {
    const bool automatic = rule.choice.backend == "auto";
    // Throws where this build lacks it
    if (compress::is_compressed(rule.choice.algorithm) && !automatic) compress::codec_of(rule.choice.algorithm);
    if (automatic) continue;
    std::string known, reason = "it is not one of this context's";
    for (const BackendInfo& info : infos) {
      if (info.name == rule.choice.backend) reason = info.reason;
      if (info.available) known += (known.empty() ? "" : ", ") + info.name;
    }
    if (reason.empty()) continue;
    throw Error(ErrorKind::unavailable,
                fmt::format("a rule names backend {}, which cannot be used: {}; available: {}", rule.choice.backend,
                            reason, known),
                {.backend = rule.choice.backend});
  }
}

ContextState::~ContextState() {
  if (!fork_guard_.here()) {  // a forked child leaves the parent's comms and segments alone
    for (auto& ready : backends_) static_cast<void>(ready.backend.release());
    static_cast<void>(control_.release());
    return;
  }
  engine->stop_thread();
  engine->finish_value_exchange();
  for (const auto& weak : comms_) {
    if (const auto comm = weak.lock()) engine->close(*comm);
  }
  if (control_) control_->stop();
  engine->set_hooks({});
  world.reset();
  engine->reclaim_all();
}

}  // namespace core

Context::Context(ContextOptions options) : state_(std::make_shared<core::ContextState>(options)) {
  std::vector<int> everyone(static_cast<std::size_t>(state_->size));
  for (int r = 0; r < state_->size; ++r) everyone[static_cast<std::size_t>(r)] = r;
  state_->world = state_->make_comm("world", everyone, {}, state_->deadline, {.exact = state_->world_is_exact});
}

Context::~Context() = default;
Context::Context(Context&&) noexcept = default;
Context& Context::operator=(Context&&) noexcept = default;

Comm Context::world() const { return Comm(state_->world); }

Comm Context::make_comm(const std::string& name, std::span<const int> world_ranks, const CommOptions& options) const {
  state_->engine->refuse_forked_child();
  std::vector<int> members(world_ranks.begin(), world_ranks.end());
  std::sort(members.begin(), members.end());
  const bool twice = std::adjacent_find(members.begin(), members.end()) != members.end();
  if (members.empty() || twice || members.front() < 0 || members.back() >= state_->size) {
    throw Error(ErrorKind::invalid,
                fmt::format("making comm {}: its ranks must be different ones of 0 to {}, not [{}]", name,
                            state_->size - 1, fmt::join(world_ranks, ", ")),
                {.comm = name});
  }
  if (!std::binary_search(members.begin(), members.end(), state_->rank)) {
    throw Error(ErrorKind::invalid,
                fmt::format("making comm {}: rank {} is not one of its members [{}]", name, state_->rank,
                            fmt::join(world_ranks, ", ")),
                {.comm = name});
  }
  const Rules rules = Rules::parse(options.rules);
  const auto deadline = options.deadline.count() > 0 ? options.deadline : state_->deadline;
  const core::CommTraits traits{options.exact.value_or(state_->world_is_exact), options.fuse};
  const auto own = std::find(world_ranks.begin(), world_ranks.end(), state_->rank) - world_ranks.begin();
  const std::vector<int> listed(world_ranks.begin(), world_ranks.end());
  const core::CommTerms mine{traits, rules.text()};
  const auto everyones =
      state_->gather("made/" + name, "making comm " + name, listed, mine.text(), deadline_after(deadline), nullptr);
  for (std::size_t r = 0; r < everyones.size(); ++r)
    core::compare_terms(name, static_cast<int>(own), mine, static_cast<int>(r),
                        core::CommTerms::from_text(everyones[r]));
  return Comm(state_->make_comm("made/" + name, listed, rules, deadline, traits));
}

int Context::rank() const noexcept { return state_->rank; }
int Context::size() const noexcept { return state_->size; }
int Context::local_rank() const noexcept { return state_->local_rank(); }
int Context::local_size() const noexcept { return state_->local_size(); }
int Context::device() const noexcept { return state_->device; }
const std::vector<BackendInfo>& Context::backends() const noexcept { return state_->infos; }
const TableInfo& Context::table() const noexcept { return state_->table_info; }
std::vector<RouteDecision> Context::route_decisions() const { return state_->engine->route_decisions(); }
void Context::progress() { state_->engine->progress(); }

}  // namespace medley
