// The group itself, messages and barriers; collectives.cpp and lists.cpp have the other operations.
#include "backend.hpp"
#include "compression.hpp"

#include <algorithm>
#include <iterator>
#include <sstream>
#include <thread>

#include "cuda.hpp"
#include "gil.hpp"
#include "host_work.hpp"
#include "store.hpp"

namespace medley::torch {

namespace {

/// The group's rules also apply to v-collectives; its backends only apply if it creates the context.
Membership with_options(Membership membership, const GroupOptions& options) {
  membership.backends = options.backends;
  membership.rules = with_v_forms(options.rules);
  membership.exact = options.exact;
  return membership;
}

c10::intrusive_ptr<GroupOptions> group_options(const c10::intrusive_ptr<c10d::Backend::Options>& given,
                                               const GroupOptions& parent) {
  const auto* options = dynamic_cast<const GroupOptions*>(given.get());
  auto made = c10::make_intrusive<GroupOptions>(options ? *options : parent);
  if (given) made->timeout = given->timeout;
  if (given) made->group_name = given->group_name;
  return made;
}

}  // namespace

TorchBackend::TorchBackend(const Membership& membership, Joined joined,
                           const c10::intrusive_ptr<GroupOptions>& options)
    : c10d::Backend(membership.rank, membership.size),
      joined_(std::move(joined)),
      store_(membership.store),
      options_(c10::make_intrusive<GroupOptions>(*options)),
      device_(joined_.context->device),
      default_group_(membership.global_ranks.empty() && !membership.own_context) {
  options_->timeout = membership.timeout;
  options_->group_name = membership.name;
  options_->global_ranks_in_group.assign(membership.global_ranks.begin(), membership.global_ranks.end());
}

TorchBackend::TorchBackend(const Membership& membership, const c10::intrusive_ptr<GroupOptions>& options)
    : TorchBackend(membership, raising([&] { return join(with_options(membership, *options)); }), options) {}

TorchBackend::TorchBackend(const Joined& parent, const Membership& membership, std::vector<int> ranks,
                           const c10::intrusive_ptr<GroupOptions>& options)
    : TorchBackend(membership, raising([&] {
                     return torch::split(parent, with_options(membership, *options), std::move(ranks));
                   }),
                   options) {}

c10::intrusive_ptr<c10d::Backend> TorchBackend::split(const c10::intrusive_ptr<c10d::Store>& store,
                                                      const std::vector<int>& ranks,
                                                      const c10::intrusive_ptr<Options>& options) {
  const auto own = std::find(ranks.begin(), ranks.end(), rank_);
  if (own == ranks.end()) return nullptr;
  static_cast<void>(comm());  // throws after shutdown()
  const auto made = group_options(options, *options_);
  Membership membership{.store = store,
                        .rank = static_cast<int>(own - ranks.begin()),
                        .size = static_cast<int>(ranks.size()),
                        .name = made->group_name,
                        .global_ranks = {},
                        .timeout = made->timeout,
                        .backends = {},
                        .rules = {},
                        .device = device_};
  std::vector<int> in_context;
  const auto& global = options_->global_ranks_in_group;
  for (const int rank : ranks) {
    require(rank >= 0 && rank < size_, "split: rank ", rank, " is not in this group of ", size_);
    const auto at = static_cast<std::size_t>(rank);
    in_context.push_back(joined_.ranks[at]);
    membership.global_ranks.push_back(global.empty() ? rank : static_cast<int>(global[at]));
  }
  return c10::make_intrusive<TorchBackend>(joined_, membership, std::move(in_context), made);
}

c10::intrusive_ptr<c10d::Backend> TorchBackend::merge(const c10::intrusive_ptr<c10d::Store>& store,
                                                      const c10::intrusive_ptr<Options>& options,
                                                      const int& rank, const int& size) {
  static_cast<void>(comm());
  const auto made = group_options(options, *options_);
  const Membership membership{.store = store,
                              .rank = rank,
                              .size = size,
                              .name = made->group_name,
                              .global_ranks = {},
                              .timeout = made->timeout,
                              .backends = {},
                              .rules = {},
                              .device = device_,
                              .own_context = true};
  return c10::make_intrusive<TorchBackend>(membership, made);
}

TorchBackend::~TorchBackend() {
  shutdown();
  without_gil([this] { joined_ = {}; });
}

Comm& TorchBackend::comm() {
  // relaxed: catches a call after shutdown(); a call concurrent with it is the caller's mistake
  require(!closed_.load(std::memory_order_relaxed), "this process group has been shut down");
  return joined_.comm;
}

void TorchBackend::abort() {
  if (!closed_) joined_.comm.abort();
}

/// The comm stays alive: a callback may be in the middle of a call, which then fails.
void TorchBackend::shutdown() {
  if (closed_.exchange(true)) return;
  if (default_group_) leave(joined_.context);
  without_gil([this] {  // ends the progress thread, which may be about to free a Python tensor
    joined_.context.reset();
  });
}

c10d::ErrorType TorchBackend::getError() {
  return c10d::ErrorType::SUCCESS;
}

void TorchBackend::check_device(const Call& call) const {
  require(call.in->get_device() == device_, name(call.op), ": got a tensor on ",
          call.in->device(), ", but this process group uses cuda:", device_,
          "; call torch.cuda.set_device before init_process_group, or give it device_id");
}

namespace {

/// What route() says about compression applies where it can, like a group's rules: not to integers by a lossy codec, to a barrier, or to
/// messages of CUDA tensors.
Choice without_codec_for(const Call& call, Choice choice) {
  if (choice.algorithm.empty() || choice.algorithm.front() != '+') return choice;
  const auto small_float = [](at::ScalarType type) { return type == at::kFloat || type == at::kHalf || type == at::kBFloat16; };
  const bool lossless = choice.algorithm == "+lz4" || choice.algorithm == "+zstd", message = call.op == Op::send || call.op == Op::recv;
  const bool applies = call.in && call.op != Op::barrier && (lossless || small_float(call.in->scalar_type())) && !(message && call.in->is_cuda());
  if (!applies) choice.algorithm.clear();
  return choice;
}

}  // namespace

TorchBackend::Issue::Issue(const TorchBackend& owner, const Call& call, std::chrono::milliseconds timeout,
                           int tag)
    : choice_(without_codec_for(call, routed(call.op, call.in && call.in->is_cuda() ? Memory::cuda : Memory::host))),
      profiled_(owner, owner.options_->global_ranks_in_group, call, owner.sequence_ + 1) {
  const bool on_device = call.in && call.in->is_cuda();
  if (on_device) owner.check_device(call);
  options_.backend = choice_.backend;
  options_.async = call.async || on_device;  // on a device, the stream that is current in wait() waits
  options_.max_wait = between_signals;       // torch waits for it anyway, and handles Ctrl-C there
  options_.deadline = timeout.count() > 0 ? timeout : owner.options_->timeout;
  options_.tag = tag;
  options_.algorithm = choice_.algorithm.empty() ? owner.options_->algorithm : choice_.algorithm;
  options_.deterministic = owner.options_->deterministic;
  if (const Compression* wanted = compression()) {
    options_.compress = wanted->codec;
    options_.algorithm = {};
    options_.feedback = wanted->feedback.get();
  }
  options_.stream = on_device ? handle_of(current_stream(call.in->device())) : nullptr;
}

c10::Stream TorchBackend::side() {
  std::call_once(side_made_, [this] {
    side_ = side_stream({c10::kCUDA, static_cast<c10::DeviceIndex>(device_)});
  });
  return *side_;
}

WorkPtr TorchBackend::finished(c10d::OpType type, const char* title, const Tensors& inputs,
                               const Tensors& outputs, const Staging& staging,
                               std::vector<medley::Work> works, std::optional<c10::Device> device) {
  const Tensors& tensors = staging.kept().empty() ? outputs : staging.kept();
  if (!tensors.empty() && tensors.front().is_cuda()) device = tensors.front().device();
  const Title of_work{rank_, type, title, ++sequence_};
  Held held{std::move(works), staging.kept(), staging.finish(), comm()};
  if (const Compression* used = compression(); used && used->feedback) held.feedbacks.push_back(used->feedback);   // the same as in Issue
  c10::intrusive_ptr<TorchWork> work;
  if (device) {
    if (!c10d::isP2POp(type)) cuda_collectives_ = true;
    StreamWork::Launches launches{Launch::make(std::move(held), current_stream(*device), side())};
    work = c10::make_intrusive<StreamWork>(of_work, inputs, outputs, std::move(launches), *device);
  } else {
    work = HostWork::make(of_work, inputs, outputs, std::move(held));
  }
  if (coalescing_) coalesced_.push_back(work);
  return work;
}

WorkPtr TorchBackend::message(c10d::OpType type, const char* title, const at::Tensor& tensor, int peer,
                              int tag) {
  require(tag >= 0, type == c10d::OpType::SEND ? "send" : "recv", ": a tag cannot be negative, got ", tag);
  const Element element = moved_as(tensor.scalar_type());
  Staging staging;
  medley::Work work;
  if (type == c10d::OpType::SEND) {
    const at::Tensor in = staging.in(tensor);
    work = issue(
        {Op::send, &in, nullptr, true, peer}, kNoTimeout,
        [&](Comm& comm, const auto& options) {
          return comm.send(const_buffer_of(in, element), peer, options);
        },
        tag);
    return finished(type, title, {tensor}, {}, staging, {work});
  }
  const at::Tensor out = staging.out(tensor, true);  // a shorter message leaves the rest unchanged
  work = issue(
      {Op::recv, &out, nullptr, true, peer}, kNoTimeout,
      [&](Comm& comm, const auto& options) { return comm.recv(buffer_of(out, element), peer, options); },
      tag);
  return finished(type, title, {tensor}, {tensor}, staging, {work});
}

WorkPtr TorchBackend::send(Tensors& tensors, int to, int tag) {
  return message(c10d::OpType::SEND, "medley:send", single("send", tensors), to, tag);
}

WorkPtr TorchBackend::recv(Tensors& tensors, int from, int tag) {
  return message(c10d::OpType::RECV, "medley:recv", single("recv", tensors), from, tag);
}

WorkPtr TorchBackend::recvAnysource(Tensors& tensors, int tag) {
  return message(c10d::OpType::RECVANYSOURCE, "medley:recvAnySource", single("recv", tensors), any_source,
                 tag);
}

/// In a group with CUDA tensors it follows everything in each rank's current stream, like nccl's.
WorkPtr TorchBackend::barrier(const c10d::BarrierOptions& opts) {
  const bool async = opts.asyncOp || coalescing_;
  const Call call{Op::barrier, nullptr, nullptr, async};
  if (!cuda_collectives_ && !(opts.device && opts.device->is_cuda())) {
    medley::Work work =
        issue(call, opts.timeout, [](Comm& comm, const auto& options) { return comm.barrier(options); });
    return finished(c10d::OpType::BARRIER, "medley:barrier", {}, {}, {}, {work});
  }
  const c10::Device device(c10::kCUDA, static_cast<c10::DeviceIndex>(device_));
  medley::Work work = issue(call, opts.timeout, [&](Comm& comm, medley::Options options) {
    options.async = true;
    options.stream = handle_of(current_stream(device));
    return comm.barrier(Memory::cuda, options);
  });
  return finished(c10d::OpType::BARRIER, "medley:barrier", {}, {}, {}, {work}, device);
}

/// Every rank reports to rank 0 through the store, so rank 0 can name the missing ones; then it releases all.
void TorchBackend::monitoredBarrier(const c10d::BarrierOptions& opts, bool wait_all_ranks) {
  const auto timeout = opts.timeout == c10d::kUnsetTimeout ? options_->timeout : opts.timeout;
  const auto until = std::chrono::steady_clock::now() + timeout;
  TorchStore store(store_);
  const std::string place = "monitored/" + std::to_string(++monitored_) + "/";
  if (rank_ != 0) {
    store.set(place + std::to_string(rank_), "here");
    const std::string said = store.get(place + "verdict", until + std::chrono::seconds(1));
    if (said.empty()) return;
    std::istringstream names(said.substr(0, said.find('\n')));
    const std::istream_iterator<int> first(names), last;
    const std::vector<int> absent(first, last);
    const std::string verdict = said.substr(said.find('\n') + 1);
    // gloo's words, here and below: programs look for them
    const std::string sentence = c10::str("Rank ", rank_, " successfully reached monitoredBarrier, but received errors ",
                                          "while waiting for send/recv from rank 0: ", verdict);
    throw TorchError(Error(ErrorKind::timeout, sentence, {.ranks = absent}), sentence);
  }
  std::vector<int> absent;
  for (int rank = 1; rank < size_; ++rank) {
    try {
      static_cast<void>(store.get(place + std::to_string(rank), until));
    } catch (const Error&) {
      absent.push_back(rank);
      if (!wait_all_ranks) break;
    }
  }
  const std::string after = std::to_string(timeout.count()) + " ms";
  std::string verdict;
  if (timeout.count() == 0) {  // no rank can have reported yet
    verdict = "Rank 0 timed out in monitoredBarrier after " + after;
  } else if (!absent.empty()) {
    verdict = c10::str(absent.size() > 1 ? "Ranks " : "Rank ", c10::Join(", ", absent),
                       " failed to pass monitoredBarrier in ", after);
  }
  // The other ranks get the absent ones in a line of their own.
  store.set(place + "verdict", verdict.empty() ? verdict : c10::str(c10::Join(" ", absent), "\n", verdict));
  if (!verdict.empty()) throw TorchError(Error(ErrorKind::timeout, verdict, {.ranks = absent}), verdict);
}

void TorchBackend::startCoalescing() {
  require(!coalescing_, "operations of this group are being coalesced already");
  raising([&] { fuse_.emplace(comm()); });
  coalescing_ = true;
}

WorkPtr TorchBackend::endCoalescing() {
  require(coalescing_, "endCoalescing without startCoalescing");
  coalescing_ = false;
  fuse_.reset();  // issues what was collected; the works report errors
  const auto members = std::exchange(coalesced_, {});
  const Title title{rank_, c10d::OpType::COALESCED, "medley:coalesced", sequence_};
  Tensors outputs;
  StreamWork::Launches launches;
  Held held;
  held.comm = comm();
  for (const auto& member : members) {
    for (const at::Tensor& tensor : member->result()) outputs.push_back(tensor);
    if (const auto* in_stream = dynamic_cast<StreamWork*>(member.get())) {
      launches.insert(launches.end(), in_stream->launches().begin(), in_stream->launches().end());
    } else {
      const auto& works = static_cast<HostWork&>(*member).works();
      held.works.insert(held.works.end(), works.begin(), works.end());
    }
  }
  if (!launches.empty()) {
    require(launches.size() == members.size(),
            "operations on CPU tensors and on CUDA tensors cannot be coalesced into one");
    const c10::Device device = launches.front()->side().device();
    return c10::make_intrusive<StreamWork>(title, Tensors{}, std::move(outputs), std::move(launches), device);
  }
  held.after = [members] {  // each copies back what it staged
    for (const auto& member : members) member->wait();
  };
  return HostWork::make(title, {}, std::move(outputs), std::move(held));
}

}  // namespace medley::torch
