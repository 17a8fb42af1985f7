#include "engine/size_agreement.hpp"

#include <algorithm>

#include "base/v_collectives.hpp"
#include "engine/comm_state.hpp"

namespace medley::core {
namespace {

const Call in_host_memory{};

Call message(Op op, int peer, int tag) {
  Call call;
  call.op = op;
  call.dtype = DType::u8;
  call.root = peer;
  call.tag = tag;
  return call;
}

}  // namespace

void SizeExchange::tell(Lane& lane, int tag, std::vector<std::int64_t> sizes, const std::vector<int>& ranks) {
  SentSizes& told = open_.emplace_back(SentSizes{std::make_shared<const std::vector<std::int64_t>>(std::move(sizes)), {}});
  told.left.reserve(ranks.size());
  for (int rank : ranks) {
    Call call = message(Op::send, rank, tag);
    call.in = told.sizes->data();
    call.in_count = static_cast<std::int64_t>(told.sizes->size() * sizeof(std::int64_t));
    try {
      if (Transfer* transfer = lane.start(call)) told.left.push_back(transfer);
    } catch (...) {
      // The peer has left and needs nothing more, or it is lost, or the lane has failed: the lane itself reports that to
      // operations that wait for it.
    }
  }
  poll(told);
  if (told.left.empty()) open_.pop_back();
}

void SizeExchange::poll(SentSizes& told) noexcept {
  std::erase_if(told.left, [&told](Transfer* transfer) {
    try {
      if (transfer->poll() != Poll::complete) return false;
      transfer->release();
    } catch (...) {   // as above
      transfer->abandon(told.sizes);
    }
    return true;
  });
}

void SizeExchange::poll() noexcept {
  for (SentSizes& told : open_) poll(told);
  std::erase_if(open_, [](const SentSizes& told) { return told.left.empty(); });
}

void SizeExchange::drop() noexcept {
  for (const SentSizes& told : open_) {
    for (Transfer* transfer : told.left) transfer->abandon(told.sizes);
  }
  open_.clear();
}

SizeQuery::SizeQuery(LaneState& lane, int tag, std::shared_ptr<AgreedSizes> agreed)
    : lane_(lane), agreed_(std::move(agreed)), messages_(*lane.filled, in_host_memory, tag) {
  ++lane_.active;
}

void SizeQuery::ask(const std::vector<int>& ranks) {
  told_ = std::make_shared<std::vector<std::vector<std::int64_t>>>(ranks.size(), agreed_->largest);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    messages_.recv((*told_)[i].data(), (*told_)[i].size() * sizeof(std::int64_t), ranks[i]);
  }
  lane_.filled->progress();
}

SizeQuery::~SizeQuery() {
  for (Transfer* transfer : messages_.abandon()) transfer->abandon(told_);
  --lane_.active;
}

bool SizeQuery::answered() {
  if (agreed_->known) return true;
  if (messages_.poll() != 0) return false;
  for (const std::vector<std::int64_t>& told : *told_) {
    std::transform(told.begin(), told.end(), agreed_->largest.begin(), agreed_->largest.begin(),
                   [](std::int64_t a, std::int64_t b) { return std::max(a, b); });
  }
  return agreed_->known = true;
}

std::size_t SizeAgreement::kind_of(const Call& call) {
  const std::size_t op = call.op == Op::gatherv ? 0 : call.op == Op::scatterv ? 1 : 2;
  return op + (call.memory == Memory::cuda ? 3 : 0);
}

std::unique_ptr<SizeAgreement> SizeAgreement::make(const CommState& comm) {
  auto made = std::make_unique<SizeAgreement>();
  bool any = false;
  for (const Op op : {Op::gatherv, Op::scatterv, Op::all_to_allv}) {
    for (const Memory memory : {Memory::host, Memory::cuda}) {
      Call call;
      call.op = op;
      call.memory = memory;
      made->kinds_[kind_of(call)].by_size = comm.routing.by_size(op, memory);
      any = any || comm.routing.by_size(op, memory);
    }
  }
  const Route* const to_peers = comm.routing.find(message(Op::send, 0, 0), comm.size);
  if (!any || !to_peers || comm.size == 1) return nullptr;
  made->lane_ = to_peers->lane;
  made->rank_ = comm.rank;
  for (int i = 1; i < comm.size; ++i) made->others_.push_back((comm.rank + i) % comm.size);
  return made;
}

bool SizeAgreement::decides(const Call& call) const { return has_local_counts(call.op) && kinds_[kind_of(call)].by_size; }

SizeAgreement::Decision SizeAgreement::next(const Call& call) {
  const std::size_t index = kind_of(call);
  // One tag per kind: within a kind, receives arrive in the order of the sends; across kinds they need not.
  const int tag = -1 - algorithms::collective_tags - static_cast<int>(index);
  static_assert(algorithms::collective_tags + static_cast<int>(kinds) <= internal_tags);
  Kind& kind = kinds_[index];
  const std::uint64_t operation = kind.issued++;
  const SizeWindow window = SizeWindow::of(operation);
  std::shared_ptr<SizeQuery> question = kind.question.lock();
  if (operation == window.first && window.number >= 2) {
    const Window& told = kind.windows[(window.number - 2) % 3];
    kind.agreed = std::make_shared<AgreedSizes>(AgreedSizes{false, told.sizes});
    kind.question = question = std::make_shared<SizeQuery>(*lane_, tag, kind.agreed);
    question->ask(who_knows(told));
  }
  count(kind, window, call);
  if (window.ends_with(operation)) {
    const Window& whole = kind.windows[window.number % 3];
    if (!rooted(call.op) || std::find(whole.roots.begin(), whole.roots.end(), rank_) != whole.roots.end()) {
      lane_->size_exchange.tell(*lane_->filled, tag, whole.sizes, others_);
    }
  }
  if (!kind.agreed) return {};
  const std::size_t place = (operation - window.first) % kind.agreed->largest.size();
  if (question && !question->answered()) return {.open = {std::move(question), place}};
  if (!kind.agreed->known) throw Error(ErrorKind::system, "what decides its route was asked by an operation that was not issued after all");
  return {.bytes = kind.agreed->largest[place]};
}

/// The root of a rooted operation knows all its counts; in others each rank knows its own.
void SizeAgreement::count(Kind& kind, const SizeWindow& window, const Call& call) {
  Window& current = kind.windows[window.number % 3];
  if (kind.issued == window.first + 1) current = {};
  current.sizes.push_back(!rooted(call.op) || call.root == rank_ ? tensor_bytes(call, 1) : 0);
  if (rooted(call.op)) current.roots.push_back(call.root);
}

/// All ranks but this one.
std::vector<int> SizeAgreement::who_knows(const Window& window) const {
  if (window.roots.empty()) return others_;
  std::vector<int> roots = window.roots;
  std::sort(roots.begin(), roots.end());
  roots.erase(std::unique(roots.begin(), roots.end()), roots.end());
  std::erase(roots, rank_);
  return roots;
}

}  // namespace medley::core
