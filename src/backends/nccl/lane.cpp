#include "backends/nccl/lane.hpp"

#include <fmt/format.h>

#include <medley/sdk/peer_abort.hpp>
#include <medley/sdk/transfer_ref.hpp>
#include <thread>

#include "backends/nccl/combine.hpp"
#include "backends/nccl/rendezvous.hpp"
#include "backends/nccl/transfers.hpp"

namespace medley::nccl {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr const char* abort_key = "aborted";
constexpr auto longest_explanation = 200ms;
constexpr auto look_interval = 20ms;  // interval of store queries for a peer's abort

}  // namespace

NcclLane::NcclLane(const CommParams& params, StoreAgent& store_agent, int device,
                   std::shared_ptr<cuda::DeviceClock> clock)
    : params_(params), store_agent_(store_agent), device_(device), clock_(std::move(clock)), pairs_(params.size) {
  const cuda::Scope scope(device_);
  track_ = std::make_unique<Track>(device_, clock_);
  self_track_ = std::make_unique<Track>(device_, clock_);
  cuda::check(cudaMallocAsync(&token_, 16, track_->stream()), "cudaMallocAsync");
  cuda::check(cudaMemsetAsync(token_, 0, 16, track_->stream()), "cudaMemsetAsync");
  preload_combine();
  connect();
}

/// Polls while everything else progresses, until the comm's deadline.
void NcclLane::await_peers(const char* what, const std::function<bool()>& done) {
  while (!done()) {
    if (steady_clock::now() > params_.deadline) {
      if (comm_) comm_->abort();
      throw Error(ErrorKind::timeout, fmt::format("comm {}: {} did not end within the deadline", params_.name, what),
                  {.comm = params_.name});
    }
    params_.progress();
    std::this_thread::sleep_for(100us);
  }
}

void NcclLane::connect() {
  take_down_retired();
  ncclUniqueId id{};
  if (params_.rank == 0) {
    id = make_id();
    params_.store->set("id", to_text(id));
  } else {
    await_peers("waiting for rank 0's NCCL id", [&] {
      const auto text = params_.store->try_get("id");
      if (text) id = from_text(*text);
      return text.has_value();
    });
  }
  comm_ = std::make_unique<Communicator>(params_.size, params_.rank, id);
  await_peers("connecting NCCL", [&] { return comm_->idle(); });
  comm_->make_fast(params_.rank);
  await_peers("connecting NCCL", [&] { return comm_->idle(); });
  // Runs one operation now, so that the program's first finds connections and kernels in place.
  Call barrier;
  barrier.op = Op::barrier;
  const TransferRef<> first(start_collective(barrier));
  await_peers("the first NCCL operation", [&] { return first->poll() == Poll::complete; });
}

Channel& NcclLane::channel(int peer, bool sends) {
  auto& made = channels_[{peer, sends}];
  if (!made) {
    const cuda::Scope scope(device_);
    made = std::make_unique<Channel>(params_, store_agent_, device_, clock_, peer, sends);
  }
  return *made;
}

void NcclLane::join(const Call& call, Track& track, std::uint64_t number) {
  if (number == 0) {
    throw Error(ErrorKind::invalid,
                "NCCL is not connected for this yet, which a graph cannot capture; run the operation "
                "once before the capture");
  }
  track.order(number, static_cast<cudaStream_t>(call.stream));
}

Transfer* NcclLane::start_collective(const Call& call) {
  TransferRef<CollectiveTransfer> transfer(new CollectiveTransfer(*this, call));
  transfer->begin();
  if (!call.captured) return transfer.release();
  join(call, *track_, transfer->number());
  track_->forget(transfer->number());
  return nullptr;
}

Transfer* NcclLane::start_message(const Call& call) {
  if (call.root < 0) {
    throw Error(ErrorKind::invalid, "NCCL cannot receive from any source; name the rank, or use another backend");
  }
  if (call.root == params_.rank) {
    if (call.captured) throw Error(ErrorKind::invalid, "a message to oneself cannot be captured in a graph over nccl");
    TransferRef<SelfTransfer> transfer(new SelfTransfer(*this, *self_track_, call));
    transfer->begin();
    return transfer.release();
  }
  Channel& way = channel(call.root, call.op == Op::send);
  TransferRef<MessageTransfer> transfer(new MessageTransfer(*this, way, call));
  transfer->begin();
  if (!call.captured) return transfer.release();
  throw Error(ErrorKind::invalid, "messages cannot be captured in a graph over nccl; use collectives");
}

Transfer* NcclLane::start(const Call& call) {
  if (aborted_) throw Error(ErrorKind::aborted, "the lane was aborted");
  return call.op == Op::send || call.op == Op::recv ? start_message(call) : start_collective(call);
}

void NcclLane::check() {
  if (aborted_) return;
  if (given_up_) throw *given_up_;  // on every call from then on: the engine fails a comm after several
  try {
    comm_->look_for_errors();
    for (auto& [key, way] : channels_) way->look_for_errors();
  } catch (const Error& error) {
    explain(error);
  }
  const auto now = steady_clock::now();
  if (!abort_question_ && now < next_look_) return;
  next_look_ = now + look_interval;
  look_for_abort();
}

/// NCCL has noticed an error. A peer's reason for aborting the comm says more: NCCL's error is thrown only when the
/// store, queried after NCCL noticed, has no reason. Returns while the query is pending.
void NcclLane::explain(const Error& error) {
  const auto now = steady_clock::now();
  if (explain_limit_ == Deadline{}) {
    abort_question_.reset();
    explain_limit_ = now + longest_explanation;
  }
  if (!look_for_abort() && now < explain_limit_) return;
  given_up_ = error;  // check() reports it from now on
  throw error;
}

/// Queries the store without waiting for it, and throws a peer's reason for aborting the comm; false while there is no
/// answer.
bool NcclLane::look_for_abort() {
  if (!abort_question_) abort_question_ = store_agent_.try_get(params_.store, abort_key);
  if (!abort_question_->done()) return false;
  // None where the store is gone: that is no failure
  const std::optional<std::string> text = abort_question_->value();
  abort_question_.reset();
  if (!text) return true;
  int kind = 0, by = 0, named = 0;
  char tail[1] = {};
  if (sscanf(text->c_str(), "%d %d %n%c", &kind, &by, &named, tail) < 2) return true;
  std::vector<int> ranks;
  const char* rest = text->c_str() + named;
  for (int rank = 0, used = 0; sscanf(rest, "%d%n", &rank, &used) == 1; rest += used) ranks.push_back(rank);
  given_up_ = peer_abort(by, kind, {}, std::move(ranks));
  throw *given_up_;
}

void NcclLane::abort(const Error& why) noexcept {
  if (aborted_) return;
  aborted_ = true;
  // NCCL does not tell its peers why; the store does. Without a store the peers learn it from their own deadlines.
  std::string text = fmt::format("{} {}", static_cast<int>(why.kind()), params_.rank);
  for (int rank : why.context().ranks) text += fmt::format(" {}", rank);
  store_agent_.post([store = params_.store, text]() -> std::optional<std::string> {
    if (!store->try_get(abort_key)) store->set(abort_key, text);
    return std::nullopt;
  });
  try {
    const cuda::Scope scope(device_);
    if (comm_) comm_->abort();
    for (auto& [key, way] : channels_) way->break_off(why);
  } catch (const Error&) {
    // CUDA has failed altogether, and nothing runs any more.
  }
}

bool NcclLane::poll_abort() noexcept {
  bool over = !comm_ || comm_->poll_abort();
  for (auto& [key, way] : channels_) over = way->poll_abort() && over;
  return over;
}

NcclLane::~NcclLane() {
  try {
    const cuda::Scope scope(device_);
    channels_.clear();
    retire(std::move(comm_), device_);
    if (token_) cudaFreeAsync(token_, track_->stream());  // cudaFree would wait for every running kernel
    track_.reset();
    self_track_.reset();
  } catch (const Error&) {
    // CUDA has failed altogether; there is nothing left to clean up.
  }
}

}  // namespace medley::nccl
