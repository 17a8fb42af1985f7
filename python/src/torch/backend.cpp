// The group itself, messages and barriers; collectives.cpp and lists.cpp have the rest.
#include "backend.hpp"

#include <algorithm>
#include <thread>

#include "cuda.hpp"
#include "gil.hpp"
#include "store.hpp"

namespace medley::torch {

TorchBackend::TorchBackend(const Membership& membership, const c10::intrusive_ptr<GroupOptions>& options)
    : c10d::Backend(membership.rank, membership.size),
      store_(membership.store),
      options_(options),
      default_group_(membership.global_ranks.empty()) {
  options_->timeout = membership.timeout;
  options_->group_name = membership.name;
  options_->global_ranks_in_group.assign(membership.global_ranks.begin(), membership.global_ranks.end());
  Membership complete = membership;
  complete.backends = options->backends;
  complete.rules = with_v_forms(options->rules);
  joined_ = join(complete);
}

TorchBackend::~TorchBackend() {
  shutdown();
}

Comm& TorchBackend::comm() {
  TORCH_CHECK(joined_.context, "medley: this process group has been shut down");
  return joined_.comm;
}

void TorchBackend::abort() {
  if (joined_.context) joined_.comm.abort();
}

void TorchBackend::shutdown() {
  if (!joined_.context) return;
  if (default_group_) leave(joined_.context);
  without_gil(
      [this] { joined_ = {}; });  // ends the progress thread, which may be about to free a tensor of Python's
}

c10d::ErrorType TorchBackend::getError() {
  return c10d::ErrorType::SUCCESS;
}

TorchBackend::Issue::Issue(const TorchBackend& owner, const Call& call, std::chrono::milliseconds timeout,
                           int tag)
    : choice_(routed(call.op, call.in && call.in->is_cuda() ? Memory::cuda : Memory::host)),
      profiled_(owner, owner.options_->global_ranks_in_group, call, owner.sequence_ + 1) {
  options_.backend = choice_.backend;
  options_.async = call.async;
  options_.patience = between_signals;  // torch waits for it anyway, and there Ctrl-C is heard
  options_.deadline = timeout.count() > 0 ? timeout : owner.options_->timeout;
  options_.tag = tag;
  options_.algorithm = choice_.algorithm.empty() ? owner.options_->algorithm : choice_.algorithm;
  options_.deterministic = owner.options_->deterministic;
  options_.stream = call.in ? stream_of(*call.in) : nullptr;
}

WorkPtr TorchBackend::finished(c10d::OpType type, const char* title, const Tensors& inputs,
                               const Tensors& outputs, const Staging& staging,
                               std::vector<medley::Work> works) {
  auto work = c10::make_intrusive<TorchWork>(rank_, type, title, inputs, ++sequence_);
  TorchWork::watch(work, {.works = std::move(works),
                          .outputs = outputs,
                          .kept = staging.kept(),
                          .after = staging.finish(),
                          .comm = comm()});
  if (coalescing_) coalesced_.push_back(work);
  return work;
}

WorkPtr TorchBackend::message(c10d::OpType type, const char* title, const at::Tensor& tensor, int peer,
                              int tag) {
  TORCH_CHECK(tag >= 0, "medley: ", title, ": a tag cannot be negative, got ", tag);
  const Element element = moved_as(tensor.scalar_type());
  Staging staging;
  medley::Work work;
  if (type == c10d::OpType::SEND) {
    const at::Tensor in = staging.in(tensor);
    work = comm().send(const_buffer_of(in, element), peer,
                       Issue(*this, {Op::send, &in, nullptr, true, peer}, kNoTimeout, tag).options());
    return finished(type, title, {tensor}, {}, staging, {work});
  }
  const at::Tensor out = staging.out(tensor, true);  // a shorter message leaves the rest as it was
  work = comm().recv(buffer_of(out, element), peer,
                     Issue(*this, {Op::recv, &out, nullptr, true, peer}, kNoTimeout, tag).options());
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

WorkPtr TorchBackend::barrier(const c10d::BarrierOptions& opts) {
  const bool async = opts.asyncOp || coalescing_;
  medley::Work work =
      comm().barrier(Issue(*this, {Op::barrier, nullptr, nullptr, async}, opts.timeout).options());
  return finished(c10d::OpType::BARRIER, "medley:barrier", {}, {}, {}, {work});
}

/// Rank 0 hears of everyone through the store, and so can say who is missing; then it lets everyone go.
void TorchBackend::monitoredBarrier(const c10d::BarrierOptions& opts, bool wait_all_ranks) {
  const auto timeout = opts.timeout == c10d::kUnsetTimeout ? options_->timeout : opts.timeout;
  const auto until = std::chrono::steady_clock::now() + timeout;
  TorchStore store(store_);
  const std::string place = "monitored/" + std::to_string(++monitored_) + "/";
  if (rank_ != 0) {
    store.set(place + std::to_string(rank_), "here");
    const std::string verdict = store.get(place + "verdict", until + std::chrono::seconds(1));
    TORCH_CHECK(
        verdict.empty(), "Rank ", rank_, " successfully reached monitoredBarrier, but received errors ",
        "while waiting for send/recv from rank 0: ", verdict);  // as gloo says it: programs look for it
    return;
  }
  std::string missing;
  int absent = 0;
  for (int rank = 1; rank < size_; ++rank) {
    try {
      static_cast<void>(store.get(place + std::to_string(rank), until));
    } catch (const Error&) {
      missing += (absent++ == 0 ? "" : ", ") + std::to_string(rank);
      if (!wait_all_ranks) break;
    }
  }
  const std::string after = std::to_string(timeout.count()) + " ms";
  std::string verdict;
  if (timeout.count() == 0) {  // nobody can have been heard
    verdict = "Rank 0 timed out in monitoredBarrier after " + after;
  } else if (absent > 0) {
    verdict = (absent > 1 ? "Ranks " : "Rank ") + missing + " failed to pass monitoredBarrier in " + after;
  }
  store.set(place + "verdict", verdict);
  TORCH_CHECK(verdict.empty(), verdict);
}

void TorchBackend::startCoalescing() {
  TORCH_CHECK(!coalescing_, "medley: operations of this group are being coalesced already");
  coalescing_ = true;
}

WorkPtr TorchBackend::endCoalescing() {
  TORCH_CHECK(coalescing_, "medley: endCoalescing without startCoalescing");
  coalescing_ = false;
  std::vector<WorkPtr> members = std::exchange(coalesced_, {});
  TorchWork::Parts parts;
  parts.comm = comm();
  for (const WorkPtr& member : members) {
    const auto& works = static_cast<TorchWork&>(*member).works();
    parts.works.insert(parts.works.end(), works.begin(), works.end());
    for (const at::Tensor& tensor : member->result()) parts.outputs.push_back(tensor);
  }
  parts.after = [members] {  // each copies back what it staged
    for (const WorkPtr& member : members) member->wait();
  };
  auto work = c10::make_intrusive<TorchWork>(rank_, c10d::OpType::COALESCED, "medley:coalesced", Tensors{},
                                             sequence_);
  TorchWork::watch(work, std::move(parts));
  return work;
}

}  // namespace medley::torch
