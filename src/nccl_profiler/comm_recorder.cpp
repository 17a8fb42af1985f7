#include "nccl_profiler/comm_recorder.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

namespace medley::nccl_profiler {
namespace {

using core::Record;
using core::RecordState;

constexpr std::size_t kept_calls = 65536;  // more calls than one group has

std::optional<Op> op_of(std::string_view function) {
  static constexpr std::pair<std::string_view, Op> names[] = {{"AllReduce", Op::all_reduce},
                                                              {"AllGather", Op::all_gather},
                                                              {"ReduceScatter", Op::reduce_scatter},
                                                              {"Send", Op::send},
                                                              {"Recv", Op::recv},
                                                              {"Broadcast", Op::broadcast},
                                                              {"Reduce", Op::reduce},
                                                              {"AlltoAll", Op::all_to_all},
                                                              {"AllToAll", Op::all_to_all},
                                                              {"Gather", Op::gather},
                                                              {"Scatter", Op::scatter}};
  for (const auto& [name, op] : names)
    if (name == function) return op;
  return std::nullopt;
}

/// "ncclFloat32" and the like.
DType dtype_of(std::string_view name) {
  static constexpr std::pair<std::string_view, DType> names[] = {
      {"ncclFloat32", DType::f32}, {"ncclBfloat16", DType::bf16}, {"ncclFloat16", DType::f16},
      {"ncclFloat64", DType::f64}, {"ncclInt8", DType::i8},       {"ncclInt32", DType::i32},
      {"ncclUint8", DType::u8},    {"ncclUint32", DType::i32},    {"ncclInt64", DType::i64},
      {"ncclUint64", DType::i64}};
  for (const auto& [known, dtype] : names)
    if (known == name) return dtype;
  return DType::u8;  // fp8, too, has one byte
}

int number_of(const char* variable) {
  const char* text = std::getenv(variable);
  if (!text || !std::isdigit(static_cast<unsigned char>(*text))) return -1;
  return std::atoi(text);
}

/// This process's rank, from its launcher: the variables that Medley's own bootstrap reads, in the same
/// order.
struct Identity {
  int rank, size;
};
Identity identity(int rank, int size) {
  constexpr const char* pairs[][2] = {{"MEDLEY_RANK", "MEDLEY_WORLD_SIZE"},
                                      {"RANK", "WORLD_SIZE"},
                                      {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                      {"PMI_RANK", "PMI_SIZE"},
                                      {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}};
  for (const auto& pair : pairs) {
    const int r = number_of(pair[0]), n = number_of(pair[1]);
    if (r >= 0 && n > r) return {r, n};
  }
  return {rank, size};
}

/// A name common to all ranks of the job.
std::string job_name() {
  for (const char* variable : {"TORCHELASTIC_RUN_ID", "SLURM_JOB_ID", "OMPI_MCA_ess_base_jobid", "MASTER_PORT"}) {
    if (const char* text = std::getenv(variable); text && *text) {
      std::string out = "nccl-";
      for (const char* c = text; *c && out.size() < 64; ++c)
        out += std::isalnum(static_cast<unsigned char>(*c)) ? *c : '-';
      return out;
    }
  }
  return fmt::format("nccl-{}", getppid());
}

}  // namespace

std::shared_ptr<ProcessRecorder> process_recorder(int rank, int size) {
  static std::mutex mutex;
  static std::shared_ptr<ProcessRecorder> recorder;
  const std::lock_guard lock(mutex);
  if (!recorder && core::records()) {
    const Identity me = identity(rank, size);
    recorder = std::make_shared<ProcessRecorder>(me.rank, me.size, job_name());
  }
  return recorder;
}

ProcessRecorder::ProcessRecorder(int rank, int size, const std::string& job)
    : recorder_({rank, size, job}), rank_(rank), size_(size), ns_per_tick_(core::ns_per_tick()) {
  backend_ = recorder_.note(core::NoteKind::backend, core::nccl_profiler_backend);
}

std::uint32_t ProcessRecorder::comm(std::uint64_t hash, const char* name, int ranks, int rank) {
  const std::lock_guard lock(mutex_);
  // This process knows only its own rank in the comm; the reader of all files joins the members.
  nlohmann::json note = {{"name", fmt::format("{}{}{:016x}", name ? name : "", name && *name ? " " : "", hash)},
                         {"size", ranks},
                         {"rank", rank}};
  if (ranks == size_ && rank == rank_) {
    std::vector<int> all;
    for (int r = 0; r < ranks; ++r) all.push_back(r);
    note["ranks"] = all;
  }
  return recorder_.note(core::NoteKind::comm, note.dump());
}

Handle* ProcessRecorder::operation(std::uint32_t comm, std::uint64_t& collectives, std::uint64_t& messages,
                                   const Call& call) {
  const auto op = op_of(call.function ? call.function : "");
  if (!op) return nullptr;
  const std::lock_guard lock(mutex_);
  Handle* handle = take(Handle::Kind::operation);
  handle->channels = call.channels > 0 ? call.channels : 1;
  handle->call_only = call.call_only;
  Record& r = recorder_.next();
  const std::uint64_t index = r.index;
  r = Record{};
  r.index = index;
  r.state = RecordState::writing;
  r.sequence = is_collective(*op) ? ++collectives : ++messages;
  r.issued = core::ticks();
  // NCCL's count is a rank's input of all_gather and gather, its output of reduce_scatter and scatter, and
  // its input per peer of all_to_all.
  const auto count = static_cast<std::int64_t>(call.count) * (*op == Op::all_to_all ? call.ranks : 1);
  const bool gives = *op != Op::recv && *op != Op::reduce_scatter && *op != Op::scatter;
  const bool takes = *op != Op::send && *op != Op::all_gather && *op != Op::gather;
  r.in_count = gives ? count : 0;
  r.out_count = takes ? count : 0;
  r.comm = comm;
  r.root = rooted(*op) || !is_collective(*op) ? call.root : -1;
  r.op = static_cast<std::uint8_t>(*op);
  r.dtype = static_cast<std::uint8_t>(call.bytes_only ? DType::u8 : dtype_of(call.datatype ? call.datatype : ""));
  r.memory = static_cast<std::uint8_t>(Memory::cuda);
  r.flags = core::record_async;
  if (call.bytes_only) r.flags = static_cast<std::uint8_t>(r.flags | core::record_bytes_only);
  if (call.call_only) r.flags = static_cast<std::uint8_t>(r.flags | core::record_call_only);
  r.backend = static_cast<std::uint8_t>(backend_);
  r.reason = core::RouteReason::fallback;
  if (call.algorithm && *call.algorithm) r.algorithm = algorithm(call.algorithm, call.protocol ? call.protocol : "");
  write_barrier();  // pairs with the first read_barrier() in RecordSource::read()
  r.state = RecordState::issued;
  handle->record = index;
  return handle;
}

std::uint8_t ProcessRecorder::algorithm(const char* algorithm, const char* protocol) {
  // NCCL passes names at fixed addresses: comparing addresses saves building the name each time.
  for (const KnownAlgorithm& known : algorithms_)
    if (known.algorithm == algorithm && known.protocol == protocol) return known.number;
  const std::uint8_t number = recorder_.algorithm(fmt::format("{}/{}", algorithm, protocol));
  if (algorithms_.size() < 64) algorithms_.push_back({algorithm, protocol, number});
  return number;
}

Handle* ProcessRecorder::channel(Handle* operation, std::uint64_t timer) {
  const std::lock_guard lock(mutex_);
  if (operation->kind != Handle::Kind::operation) return nullptr;
  Handle* handle = take(Handle::Kind::channel);
  handle->parent = operation;
  handle->gpu_begin = handle->gpu_end = timer;
  if (Record* r = recorder_.find(operation->record); r && r->started == 0) {
    r->started = core::ticks();
    r->state = RecordState::started;
  }
  return handle;
}

Handle* ProcessRecorder::api(const Call& call) {
  const std::lock_guard lock(mutex_);
  Handle* handle = take(Handle::Kind::api);
  handle->call = call;
  return handle;
}

Handle* ProcessRecorder::group() {
  const std::lock_guard lock(mutex_);
  return take(Handle::Kind::group);
}

void ProcessRecorder::channel_timer(Handle* channel, std::uint64_t timer) {
  const std::lock_guard lock(mutex_);
  if (channel->kind == Handle::Kind::channel) channel->gpu_end = timer;
}

void ProcessRecorder::stop(Handle* handle) {
  const std::lock_guard lock(mutex_);
  switch (handle->kind) {
    case Handle::Kind::operation:
      handle->host_done = true;
      if (handle->call_only) {
        if (Record* r = recorder_.find(handle->record)) {
          r->started = r->issued;
          r->completed = core::ticks();
          write_barrier();  // as in operation()
          r->state = RecordState::complete;
        }
        finish(handle);
        break;
      }
      if (handle->stopped >= handle->channels) finish(handle);
      break;
    case Handle::Kind::channel: {
      Handle* operation = handle->parent;
      if (operation->gpu_begin == 0 || handle->gpu_begin < operation->gpu_begin)
        operation->gpu_begin = handle->gpu_begin;
      if (handle->gpu_end > operation->gpu_end) operation->gpu_end = handle->gpu_end;
      give_back(handle);
      ++operation->stopped;
      if (operation->stopped == operation->channels) {
        if (Record* r = recorder_.find(operation->record)) {
          const std::uint64_t now = core::ticks();
          const double ns = operation->gpu_end > operation->gpu_begin
                                ? static_cast<double>(operation->gpu_end - operation->gpu_begin)
                                : 0;
          // The GPU's clock is not the host's: the record keeps the GPU's duration and ends when NCCL's
          // thread saw the end.
          r->completed = r->gpu_completed = now;
          const auto length = static_cast<std::uint64_t>(ns / ns_per_tick_);
          r->gpu_started = ns > 0 && now > length ? std::max(r->issued, now - length) : r->started;
          write_barrier();  // as in operation()
          r->state = RecordState::complete;
        }
        if (operation->host_done) finish(operation);
      }
      break;
    }
    case Handle::Kind::api:
      // NCCL names it as the parent of the collective that it starts later, at the end of the group.
      ended_calls_.push_back(handle);
      if (ended_calls_.size() > kept_calls) {
        give_back(ended_calls_.front());
        ended_calls_.pop_front();
      }
      break;
    case Handle::Kind::group: give_back(handle); break;
    case Handle::Kind::free: break;
  }
}

void ProcessRecorder::finish(Handle* operation) { give_back(operation); }

Handle* ProcessRecorder::take(Handle::Kind kind) {
  if (free_.empty()) {
    handles_.emplace_back();
    free_.push_back(&handles_.back());
  }
  Handle* handle = free_.back();
  free_.pop_back();
  *handle = Handle{};
  handle->kind = kind;
  handle->process = this;
  return handle;
}

void ProcessRecorder::give_back(Handle* handle) {
  handle->kind = Handle::Kind::free;
  free_.push_back(handle);
}

}  // namespace medley::nccl_profiler
