// NCCL without devices: communicators over sockets, and "kernels" that the mock's streams run and that wait
// for their peers as NCCL's do. As with NCCL, launches on a non-blocking communicator continue in the
// background, and those on a communicator made from it return once they are in the stream. Sends and receives
// between unconnected ranks would block there and are rejected.
#include <nccl.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <medley/sdk/reduce.hpp>
#include <medley/types.hpp>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "mock.hpp"
#include "wire.hpp"

using medley::mock::device_view;
using medley::mock::Parcel;

namespace {

std::atomic<bool> async_error{false}, init_fails{false};
std::atomic<int> background_launches{0};

struct State {
  medley::mock::Wire wire;
  int ranks = 1, rank = 0;
  std::atomic<bool> aborted{false};
  std::atomic<ncclResult_t> status{ncclInProgress};
  std::atomic<int> running{0};                ///< launches that have not ended
  std::vector<bool> sends_to, receives_from;  ///< connected pairs, for all communicators that share this
};

medley::DType dtype_of(ncclDataType_t type) {
  using enum medley::DType;
  switch (type) {
    case ncclInt8: return i8;
    case ncclUint8: return u8;
    case ncclInt32: return i32;
    case ncclInt64: return i64;
    case ncclFloat16: return f16;
    case ncclFloat32: return f32;
    case ncclFloat64: return f64;
    case ncclBfloat16: return bf16;
  }
  return u8;
}

medley::ReduceOp reduce_of(ncclRedOp_t op) {
  using enum medley::ReduceOp;
  switch (op) {
    case ncclSum: return sum;
    case ncclProd: return product;
    case ncclMax: return max;
    case ncclMin: return min;
    case ncclAvg: return avg;
  }
  return sum;
}

using Bytes = std::vector<std::byte>;
enum class Kind { send, recv, broadcast, reduce, all_reduce, all_gather, reduce_scatter };

/// One call, with its addresses already translated.
struct Launch {
  Kind kind;
  std::byte* in;
  std::byte* out;
  std::size_t count, bytes;  ///< of one part
  ncclDataType_t type;
  ncclRedOp_t op;
  int root;
  std::shared_ptr<State> comm;
  bool blocking;
  cudaStream_t stream;
};

bool gives(const Launch& l, int to) {
  switch (l.kind) {
    case Kind::broadcast: return l.comm->rank == l.root;
    case Kind::reduce: return to == l.root;
    default: return true;
  }
}
bool takes(const Launch& l, int from) {
  switch (l.kind) {
    case Kind::broadcast: return from == l.root;
    case Kind::reduce: return l.comm->rank == l.root;
    default: return true;
  }
}

/// Sends each rank's input to every rank that needs it, then combines or concatenates.
void collective(const Launch& l) {
  State& comm = *l.comm;
  const auto me = static_cast<std::size_t>(comm.rank);
  const bool scatters = l.kind == Kind::reduce_scatter;
  std::vector<Bytes> inputs(static_cast<std::size_t>(comm.ranks));
  std::vector<Parcel> sends, receives;
  for (int r = 0; r < comm.ranks; ++r) {
    const auto i = static_cast<std::size_t>(r);
    std::byte* mine = l.in ? l.in + (scatters ? i * l.bytes : 0) : nullptr;
    if (r == comm.rank) {
      if (mine) inputs[i].assign(mine, mine + l.bytes);
      continue;
    }
    if (gives(l, r)) sends.push_back({r, mine, l.bytes});
    if (!takes(l, r)) continue;
    inputs[i].resize(l.bytes);
    receives.push_back({r, inputs[i].data(), l.bytes});
  }
  if (!comm.wire.exchange(sends, receives, comm.aborted) || !l.out) return;
  if (l.kind == Kind::broadcast) {
    std::memcpy(l.out, inputs[static_cast<std::size_t>(l.root)].data(), l.bytes);
  } else if (l.kind == Kind::all_gather) {
    for (std::size_t r = 0; r < inputs.size(); ++r) std::memcpy(l.out + r * l.bytes, inputs[r].data(), l.bytes);
  } else if (l.kind != Kind::reduce || static_cast<int>(me) == l.root) {
    std::vector<const void*> sources;
    for (const Bytes& input : inputs) sources.push_back(input.data());
    medley::reducer(dtype_of(l.type), reduce_of(l.op))(l.out, sources.data(), comm.ranks, l.count,
                                                       l.op == ncclAvg ? comm.ranks : 1, false);
  }
  const char* wrong_from = std::getenv("MOCK_NCCL_WRONG");
  if (wrong_from && l.bytes >= std::strtoul(wrong_from, nullptr, 10)) l.out[l.bytes - 1] ^= std::byte{0x40};
}

/// Runs one group on one communicator and stream.
void run(const std::vector<Launch>& launches) {
  State& comm = *launches.front().comm;
  std::vector<Parcel> sends, receives, own_sends, own_receives;
  for (const Launch& l : launches) {
    if (l.kind == Kind::send) (l.root == comm.rank ? own_sends : sends).push_back({l.root, l.in, l.bytes});
    if (l.kind == Kind::recv) (l.root == comm.rank ? own_receives : receives).push_back({l.root, l.out, l.bytes});
    if (l.kind > Kind::recv) collective(l);
  }
  for (std::size_t i = 0; i < own_sends.size(); ++i)
    std::memcpy(own_receives[i].data, own_sends[i].data, own_sends[i].bytes);
  if (!sends.empty() || !receives.empty()) comm.wire.exchange(sends, receives, comm.aborted);
  --comm.running;
}

/// Whether all pairs of the group were already connected; connects them.
bool connect_pairs(const std::vector<Launch>& launches) {
  bool were = true;
  for (const Launch& l : launches) {
    if (l.kind > Kind::recv || l.root == l.comm->rank) continue;
    auto& known = l.kind == Kind::send ? l.comm->sends_to : l.comm->receives_from;
    known.resize(static_cast<std::size_t>(l.comm->ranks));
    were = were && known[static_cast<std::size_t>(l.root)];
    known[static_cast<std::size_t>(l.root)] = true;
  }
  return were;
}

/// A rank's sends to itself must match its receives, or NCCL would wait forever.
bool own_parts_match(const std::vector<Launch>& launches) {
  std::vector<std::size_t> given, taken;
  for (const Launch& l : launches) {
    if (l.kind <= Kind::recv && l.root == l.comm->rank) (l.kind == Kind::send ? given : taken).push_back(l.bytes);
  }
  return given == taken;
}

ncclResult_t enqueue(const std::vector<Launch>& launches) {
  const std::shared_ptr<State> comm = launches.front().comm;
  if (comm->status != ncclSuccess) return ncclInvalidUsage;  // busy, failed or not yet connected
  const bool connected = connect_pairs(launches), blocking = launches.front().blocking;
  if ((blocking && !connected) || !own_parts_match(launches)) return ncclInvalidUsage;
  for (const Launch& l : launches) {
    if (l.blocking != blocking) return ncclInvalidUsage;
  }
  ++comm->running;
  const cudaStream_t stream = launches.front().stream;
  if (blocking) {
    medley::mock::enqueue(stream, [launches] { run(launches); });
    return ncclSuccess;
  }
  comm->status = ncclInProgress;
  ++background_launches;
  std::thread([launches, comm, stream] {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    medley::mock::enqueue(stream, [launches] { run(launches); });
    comm->status = ncclSuccess;
  }).detach();
  return ncclInProgress;
}

thread_local int group_depth = 0;
thread_local std::vector<Launch> group;

}  // namespace

struct MockComm {
  std::shared_ptr<State> state = std::make_shared<State>();
  bool blocking = false;
};

namespace {

std::size_t size_of(ncclDataType_t type) { return medley::size_of(dtype_of(type)); }

ncclResult_t add(Kind kind, const void* in, std::size_t in_parts, void* out, std::size_t out_parts, std::size_t count,
                 ncclDataType_t type, ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream) {
  const std::size_t bytes = count * size_of(type);
  Launch launch{kind,
                in ? device_view(in, in_parts * bytes) : nullptr,
                out ? device_view(out, out_parts * bytes) : nullptr,
                count,
                bytes,
                type,
                op,
                root,
                comm->state,
                comm->blocking,
                stream};
  if (root < 0 || root >= comm->state->ranks) return ncclInvalidArgument;
  // Not the device's memory
  if (bytes > 0 && ((in && !launch.in) || (out && !launch.out))) return ncclInvalidArgument;
  if (group_depth == 0) return enqueue({launch});
  group.push_back(launch);
  return ncclSuccess;
}

}  // namespace

extern "C" {

void mock_nccl_async_error(int on) { async_error = on != 0; }
int mock_nccl_background_launches() { return background_launches; }
void mock_nccl_fail_init(int on) { init_fails = on != 0; }

ncclResult_t ncclGetVersion(int* version) {
  *version = 22803;
  return ncclSuccess;
}
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  std::random_device random;
  std::snprintf(id->internal, sizeof id->internal, "mock-nccl-%d-%08x%08x", getpid(), random(), random());
  return ncclSuccess;
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config) {
  if (config->blocking != 0 || config->splitShare != 1) return ncclInvalidUsage;  // Medley never blocks, and shares
  *comm = new MockComm;
  const std::shared_ptr<State> state = (*comm)->state;
  state->ranks = ranks;
  state->rank = rank;
  if (init_fails) {
    state->status = ncclSystemError;
    return ncclInProgress;
  }
  ++state->running;
  std::thread([state, id] {
    const bool met = state->wire.connect(id.internal, state->ranks, state->rank, state->aborted);
    state->status = met ? ncclSuccess : ncclSystemError;
    --state->running;
  }).detach();
  return ncclInProgress;
}
ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* made, ncclConfig_t* config) {
  // All that Medley uses
  if (color != 0 || key != comm->state->rank || config->blocking != 1) return ncclInvalidUsage;
  *made = new MockComm{comm->state, true};  // one order for both, as Medley keeps it
  return ncclSuccess;
}
ncclResult_t ncclCommFinalize(ncclComm_t comm) { return comm->state->running == 0 ? ncclSuccess : ncclInProgress; }
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  while (comm->state->running > 0) usleep(200);
  if (comm->state.use_count() == 1) comm->state->wire.close();  // the last of a split
  delete comm;
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  comm->state->aborted = true;
  while (comm->state->running > 0) usleep(200);
  if (comm->state.use_count() == 1) comm->state->wire.close();  // the last of a split
  delete comm;
  return ncclSuccess;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  *state = async_error && comm->state->status == ncclSuccess ? ncclRemoteError : comm->state->status.load();
  return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSystemError: return "unhandled system error";
    case ncclRemoteError: return "remote process exited or there was a network error";
    case ncclInvalidArgument: return "invalid argument";
    case ncclInvalidUsage: return "invalid usage";
    default: return "internal error";
  }
}
const char* ncclGetLastError(ncclComm_t) { return "the mock was told so"; }

ncclResult_t ncclGroupStart() {
  ++group_depth;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  if (--group_depth > 0 || group.empty()) return ncclSuccess;
  return enqueue(std::exchange(group, {}));  // Medley's groups have one communicator and one stream
}
ncclResult_t ncclSend(const void* in, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return add(Kind::send, in, 1, nullptr, 0, count, type, ncclSum, peer, comm, stream);
}
ncclResult_t ncclRecv(void* out, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
  return add(Kind::recv, nullptr, 0, out, 1, count, type, ncclSum, peer, comm, stream);
}
ncclResult_t ncclBroadcast(const void* in, void* out, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t stream) {
  return add(Kind::broadcast, in, 1, out, 1, count, type, ncclSum, root, comm, stream);
}
ncclResult_t ncclReduce(const void* in, void* out, size_t count, ncclDataType_t type, ncclRedOp_t op, int root,
                        ncclComm_t comm, cudaStream_t stream) {
  return add(Kind::reduce, in, 1, comm->state->rank == root ? out : nullptr, 1, count, type, op, root, comm, stream);
}
ncclResult_t ncclAllReduce(const void* in, void* out, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
  return add(Kind::all_reduce, in, 1, out, 1, count, type, op, 0, comm, stream);
}
ncclResult_t ncclAllGather(const void* in, void* out, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  return add(Kind::all_gather, in, 1, out, static_cast<std::size_t>(comm->state->ranks), count, type, ncclSum, 0, comm,
             stream);
}
ncclResult_t ncclReduceScatter(const void* in, void* out, size_t count, ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, cudaStream_t stream) {
  return add(Kind::reduce_scatter, in, static_cast<std::size_t>(comm->state->ranks), out, 1, count, type, op, 0, comm,
             stream);
}
}
