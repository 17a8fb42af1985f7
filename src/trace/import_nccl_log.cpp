// NCCL's log: with NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=INIT,COLL it prints a line per call and one per
// comm. There are no times. Counts are those of the call: one rank's part of an all_gather or reduce_scatter.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "trace/import.hpp"
#include "trace/import_parts.hpp"
#include "trace/log_readers.hpp"
#include "trace/sizes.hpp"

namespace medley::trace {
namespace {

/// The word after `key`, up to a blank or closing bracket.
std::string_view word_after(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return {};
  text.remove_prefix(at + key.size());
  return text.substr(0, text.find_first_of(" ]\t"));
}

std::int64_t number_after(std::string_view text, std::string_view key) {
  const std::string word(word_after(text, key));
  if (word.empty() || word.size() > 18 || word.find_first_not_of("0123456789") != std::string::npos) return -1;
  return std::atoll(word.c_str());
}

// ncclDataType_t; fp8 has no dtype of its own here.
constexpr std::array<DType, 12> nccl_types = {DType::i8,  DType::u8,  DType::i32, DType::i32,  DType::i64, DType::i64,
                                              DType::f16, DType::f32, DType::f64, DType::bf16, DType::u8,  DType::u8};
constexpr std::array<ReduceOp, 5> nccl_reductions = {ReduceOp::sum, ReduceOp::product, ReduceOp::max, ReduceOp::min,
                                                     ReduceOp::avg};

/// Elements of a call's full tensor.
std::int64_t full_elements(Op op, std::int64_t count, std::int64_t ranks) {
  const bool parts =
      op == Op::all_gather || op == Op::reduce_scatter || op == Op::all_to_all || op == Op::gather || op == Op::scatter;
  return parts ? count * std::max<std::int64_t>(1, ranks) : count;
}

}  // namespace

struct NcclLog::Process {
  struct Comm {
    std::string id;  ///< equal on all ranks
    int rank = -1, size = 0;
    std::uint32_t calls = 0;
  };
  std::string host;
  std::int64_t pid = 0;
  std::map<std::string, Comm> comms;  ///< by pointer
  struct Call {
    Event event;
    std::string comm;
    std::int64_t root = -1;
  };
  std::vector<Call> calls;

  void line(std::string_view text, const std::string& where) {
    const std::string comm(word_after(text, " comm "));
    if (comm.empty()) return;
    if (text.find("Init COMPLETE") != std::string_view::npos || text.find("Init START") != std::string_view::npos) {
      Comm& made = comms[comm];
      made.id = std::string(word_after(text, "commId "));
      made.rank = static_cast<int>(std::clamp<std::int64_t>(number_after(text, " rank "), -1, most_ranks));
      made.size = static_cast<int>(std::clamp<std::int64_t>(number_after(text, " nranks "), 0, most_ranks));
      return;
    }
    if (text.find("opCount") != std::string_view::npos) call(text, comm, where);
  }

  void call(std::string_view text, const std::string& comm, const std::string& where) {
    const std::size_t info = text.find("NCCL INFO ");
    const std::string_view name = text.substr(info + 10, text.find(':', info) - info - 10);
    const auto op = foreign_op(name);
    if (!op) return;
    const std::int64_t count = number_after(text, "count "), type = number_after(text, "datatype ");
    const std::int64_t ranks = number_after(text, "[nranks=");
    if (count < 0 || type < 0 || type >= static_cast<std::int64_t>(nccl_types.size()) || ranks < 1 ||
        ranks > most_ranks || count > (std::int64_t{1} << 50) / ranks)
      refuse_import(where, "is a call in NCCL's log without a count, a datatype or the number of ranks");
    Call out;
    out.comm = comm;
    out.root = number_after(text, "root ");
    Comm& on = comms[comm];
    if (on.size == 0) on.size = static_cast<int>(ranks);
    Event& event = out.event;
    event.op = *op;
    event.dtype = nccl_types[static_cast<std::size_t>(type)];
    event.bytes = checked_bytes(full_elements(*op, count, ranks), event.dtype, where);
    event.matched = is_collective(*op);
    event.sequence = event.matched ? ++on.calls : 0;
    event.async = true;
    event.unknown = {Field::phase, Field::async};
    const std::int64_t reduction = number_after(text, " op ");
    if (reduction >= 0 && reduction < static_cast<std::int64_t>(nccl_reductions.size()))
      event.reduce = nccl_reductions[static_cast<std::size_t>(reduction)];
    else event.unknown.add(Field::reduce);
    calls.push_back(std::move(out));
  }
};

NcclLog::NcclLog(const std::string& place, Trace& trace) : place_(place), trace_(trace) {}
NcclLog::~NcclLog() = default;

void NcclLog::line(std::string_view text, std::size_t number) {
  text = unlabelled(text).text;
  const std::size_t info = text.find(" NCCL INFO ");
  if (info == std::string_view::npos) return;
  // host:pid:tid [device] NCCL INFO …
  const std::size_t first = text.find(':'), second = text.find(':', first + 1);
  if (second == std::string_view::npos || second > info) return;
  const std::size_t blank = text.rfind(' ', first);
  const std::size_t begin = blank == std::string_view::npos ? 0 : blank + 1;
  auto& process = processes_[std::string(text.substr(begin, second - begin))];
  if (!process) {
    if (processes_.size() > 65536) refuse_import(place_, "is of more than 65,536 processes");
    process = std::make_unique<Process>();
    process->host = std::string(text.substr(begin, first - begin));
    process->pid =
        std::atoll(std::string(text.substr(first + 1, std::min<std::size_t>(second - first - 1, 12))).c_str());
  }
  process->line(text, fmt::format("{}: line {}", place_, number));
}

bool NcclLog::found() const {
  return std::any_of(processes_.begin(), processes_.end(), [](const auto& p) { return !p.second->calls.empty(); });
}

void NcclLog::finish() {
  if (!found()) refuse_import(place_, "holds no call: NCCL logs them with NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,COLL");
  // The largest comm of a process is the world: the rank there is the job's rank. The ranks of a comm are
  // known when several processes logged it under one id.
  std::map<std::string, std::map<int, int>> members;  // comm id: comm rank to world rank
  std::map<std::string, int> rank_of;
  int next = 0;
  for (const auto& [key, process] : processes_) {
    int size = 0, rank = -1;
    for (const auto& [pointer, comm] : process->comms) {
      if (comm.size > size && comm.rank >= 0) {
        size = comm.size;
        rank = comm.rank;
      }
    }
    const bool taken = std::any_of(rank_of.begin(), rank_of.end(), [&](const auto& r) { return r.second == rank; });
    rank_of[key] = rank >= 0 && !taken ? rank : next + (1 << 16);
    next += rank < 0 || taken;
    trace_.world = std::max(trace_.world, size);
    for (const auto& [pointer, comm] : process->comms)
      if (!comm.id.empty() && comm.rank >= 0) members[comm.id][comm.rank] = rank_of[key];
  }
  for (const auto& [key, process] : processes_) {
    if (process->calls.empty()) continue;
    auto list = std::make_shared<EventList>();
    for (Process::Call& call : process->calls) {
      const Process::Comm& comm = process->comms[call.comm];
      Group group;
      group.name = comm.id.empty() ? call.comm : comm.id;
      group.size = comm.size;
      const auto known = members.find(comm.id);
      if (known != members.end() && static_cast<int>(known->second.size()) == comm.size)
        for (const auto& [in_comm, in_world] : known->second) group.ranks.push_back(in_world);
      else if (comm.size == trace_.world)
        for (int r = 0; r < comm.size; ++r) group.ranks.push_back(r);
      else call.event.unknown.add(Field::group);
      call.event.group = trace_.group(group);
      const bool has_root = call.root >= 0 && static_cast<std::size_t>(call.root) < group.ranks.size();
      if (has_root && (rooted(call.event.op) || !is_collective(call.event.op)))
        call.event.peer = group.ranks[static_cast<std::size_t>(call.root)];
      else call.event.unknown.add(Field::root);
      list->events.push_back(call.event);
    }
    RankTrace rank;
    rank.rank = rank_of[key];
    rank.host = process->host;
    rank.pid = process->pid;
    rank.file = place_;
    rank.issued = static_cast<std::int64_t>(list->events.size());
    rank.events = std::move(list);
    trace_.ranks.push_back(std::move(rank));
  }
  trace_.timed = false;
  trace_.waits_known = false;
  trace_.format = "nccl log";
}

void import_nccl_log(ByteStream& in, Trace& trace) {
  NcclLog log(in.name(), trace);
  std::string line;
  for (std::size_t number = 1; in.line(line); ++number) log.line(line, number);
  log.finish();
}

}  // namespace medley::trace
