#include "engine/size_agreement.hpp"

#include <algorithm>

#include "base/v_collectives.hpp"
#include "engine/comm_state.hpp"

namespace medley::core {

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
  made->lane_ = exchange_lane(comm);
  if (!any || !made->lane_ || comm.size == 1) return nullptr;
  made->rank_ = comm.rank;
  for (int i = 1; i < comm.size; ++i) made->others_.push_back((comm.rank + i) % comm.size);
  return made;
}

bool SizeAgreement::decides(const Call& call) const {
  return has_local_counts(call.op) && kinds_[kind_of(call)].by_size;
}

SizeAgreement::Decision SizeAgreement::next(const Call& call) {
  const std::size_t index = kind_of(call);
  const int tag = size_exchange_tag(index);
  Kind& kind = kinds_[index];
  const std::uint64_t operation = kind.issued++;
  const SizeWindow window = SizeWindow::of(operation);
  std::shared_ptr<ValueQuery> query = kind.query.lock();
  if (operation == window.first && window.number >= 2) {
    const Window& past = kind.windows[(window.number - 2) % 3];
    kind.agreed = std::make_shared<AgreedValues>(AgreedValues{false, past.sizes});
    kind.query = query = std::make_shared<ValueQuery>(*lane_, tag, kind.agreed);
    query->ask(who_knows(past));
  }
  count(kind, window, call);
  if (window.ends_with(operation)) {
    const Window& whole = kind.windows[window.number % 3];
    if (!rooted(call.op) || std::find(whole.roots.begin(), whole.roots.end(), rank_) != whole.roots.end()) {
      lane_->value_exchange.tell(*lane_->filled, tag, whole.sizes, others_);
    }
  }
  if (!kind.agreed) return {};
  const std::size_t place = (operation - window.first) % kind.agreed->largest.size();
  if (query && !query->answered()) return {.open = {std::move(query), place}};
  if (!kind.agreed->known) throw_dropped_exchange(*lane_, "sizes");
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
