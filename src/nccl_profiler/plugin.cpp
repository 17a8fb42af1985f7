// The plugin: NCCL looks up ncclProfiler_v6 (2.29 and later), _v5 (2.28) or _v4 (2.27) in the library that
// NCCL_PROFILER_PLUGIN names. Nothing here may fail a job: the plugin skips what it cannot record.
#include <exception>
#include <type_traits>

#include "nccl_profiler/abi.hpp"
#include "nccl_profiler/comm_recorder.hpp"

namespace medley::nccl_profiler {
namespace {

constexpr int log_info = 3;                  // NCCL_LOG_INFO
constexpr unsigned long log_profiler = 0x4;  // any value will do: NCCL filters by it

Result make_comm(void** context, int* mask, std::uint64_t hash, const char* name, int ranks, int rank, Logger log,
                 int wanted) {
  *context = nullptr;
  *mask = 0;
  try {
    const auto process = process_recorder(rank, ranks);
    if (!process) return 0;
    auto comm = std::make_unique<CommRecorder>();
    comm->process = process;
    comm->ranks = ranks;
    comm->comm = process->comm(hash, name, ranks, rank);
    *context = comm.release();
    *mask = wanted;
  } catch (const std::exception& error) {
    if (log) log(log_info, log_profiler, "medley", 0, "medley: nothing is recorded: %s", error.what());
  }
  return 0;
}

Result stop_event(void* event) {
  if (event) static_cast<Handle*>(event)->process->stop(static_cast<Handle*>(event));
  return 0;
}

Result record_state(void* event, int state, StateArguments* arguments) {
  if (event && state == kernel_channel_stop && arguments)
    static_cast<Handle*>(event)->process->channel_timer(static_cast<Handle*>(event), arguments->timer);
  return 0;
}

Result finalize(void* context) {
  delete static_cast<CommRecorder*>(context);
  return 0;
}

/// The call of a collective event, with the program's count and type where its API event is the parent.
template <typename Event>
Call call_of(const Event& e, const void* parent) {
  Call call;
  call.function = e.function;
  call.datatype = e.datatype;
  call.count = e.count;
  call.channels = e.channels;
  const auto* api = static_cast<const Handle*>(parent);
  if (api && api->kind == Handle::Kind::api) {
    call.datatype = api->call.datatype;
    call.count = api->call.count;
  } else if (call.datatype && std::string_view(call.datatype) == "ncclInt8") {
    call.bytes_only = true;  // NCCL moves bytes unless it reduces
  }
  return call;
}

Result init_v4(void** context, int* mask, const char* name, std::uint64_t hash, int, int ranks, int rank, Logger log) {
  return make_comm(context, mask, hash, name, ranks, rank, log,
                   collective_event | message_event | kernel_channel_event);
}

constexpr int events_v5 =
    collective_event | message_event | kernel_channel_event | collective_api_event | message_api_event;

template <int wanted>
Result init(void** context, std::uint64_t hash, int* mask, const char* name, int, int ranks, int rank, Logger log) {
  return make_comm(context, mask, hash, name, ranks, rank, log, wanted);
}

template <typename Descriptor>
void start(CommRecorder& comm, void** event, const Descriptor& d) {
  ProcessRecorder& process = *comm.process;
  if (d.type == collective_event) {
    Call call = call_of(d.collective, d.parent);
    call.root = d.collective.root;
    call.ranks = comm.ranks;
    call.algorithm = d.collective.algorithm;
    call.protocol = d.collective.protocol;
    *event = process.operation(comm.comm, comm.collectives, comm.messages, call);
  } else if (d.type == message_event) {
    Call call = call_of(d.message, d.parent);
    call.root = d.message.peer;
    *event = process.operation(comm.comm, comm.collectives, comm.messages, call);
  } else if (d.type == kernel_channel_event && d.parent) {
    *event = process.channel(static_cast<Handle*>(d.parent), d.kernel_channel.timer);
  }
}

Result start_v4(void* context, void** event, DescriptorV4* d) {
  *event = nullptr;
  if (!context) return 0;
  try {
    start(*static_cast<CommRecorder*>(context), event, *d);
  } catch (const std::exception&) {
    *event = nullptr;
  }
  return 0;
}

/// A collective of the copy engines. NCCL reports its launch alone.
void start_copy_engine(CommRecorder& comm, void** event, const DescriptorV6& d) {
  struct {
    const char *function, *datatype;
    std::size_t count;
    int channels;
  } const e{d.copy_engine.function, d.copy_engine.datatype, d.copy_engine.count, 1};
  Call call = call_of(e, d.parent);
  call.root = d.copy_engine.root;
  call.ranks = comm.ranks;
  call.algorithm = "copy engine";
  call.protocol = d.copy_engine.strategy;
  call.call_only = true;
  *event = comm.process->operation(comm.comm, comm.collectives, comm.messages, call);
}

/// Versions 5 and 6.
template <typename Descriptor>
Result start_event(void* context, void** event, Descriptor* d) {
  *event = nullptr;
  if (!context) return 0;
  auto& comm = *static_cast<CommRecorder*>(context);
  try {
    if (d->type == collective_api_event || d->type == message_api_event) {
      Call call;
      const bool collective = d->type == collective_api_event;
      call.function = collective ? d->collective_api.function : d->message_api.function;
      call.count = collective ? d->collective_api.count : d->message_api.count;
      call.datatype = collective ? d->collective_api.datatype : d->message_api.datatype;
      *event = comm.process->api(call);
      return 0;
    }
    if constexpr (std::is_same_v<Descriptor, DescriptorV6>) {
      if (d->type == copy_engine_event) start_copy_engine(comm, event, *d);
    }
    start(comm, event, *d);
  } catch (const std::exception&) {
    *event = nullptr;
  }
  return 0;
}

}  // namespace

}  // namespace medley::nccl_profiler

extern "C" {
__attribute__((visibility("default"))) extern const medley::nccl_profiler::PluginV4 ncclProfiler_v4;
__attribute__((visibility("default"))) extern const medley::nccl_profiler::PluginV5 ncclProfiler_v5;
__attribute__((visibility("default"))) extern const medley::nccl_profiler::PluginV6 ncclProfiler_v6;

const medley::nccl_profiler::PluginV4 ncclProfiler_v4 = {
    "medley",
    medley::nccl_profiler::init_v4,
    medley::nccl_profiler::start_v4,
    medley::nccl_profiler::stop_event,
    medley::nccl_profiler::record_state,
    medley::nccl_profiler::finalize,
};
const medley::nccl_profiler::PluginV5 ncclProfiler_v5 = {
    "medley",
    medley::nccl_profiler::init<medley::nccl_profiler::events_v5>,
    medley::nccl_profiler::start_event<medley::nccl_profiler::DescriptorV5>,
    medley::nccl_profiler::stop_event,
    medley::nccl_profiler::record_state,
    medley::nccl_profiler::finalize,
};
const medley::nccl_profiler::PluginV6 ncclProfiler_v6 = {
    "medley",
    medley::nccl_profiler::init<medley::nccl_profiler::events_v5 | medley::nccl_profiler::copy_engine_event>,
    medley::nccl_profiler::start_event<medley::nccl_profiler::DescriptorV6>,
    medley::nccl_profiler::stop_event,
    medley::nccl_profiler::record_state,
    medley::nccl_profiler::finalize,
};
}
