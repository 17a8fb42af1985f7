#include "core/size_agreement.hpp"

#include <algorithm>

#include "core/comm_state.hpp"
#include "core/v_forms.hpp"

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

void Tellings::tell(Lane& lane, int tag, std::int64_t bytes, const std::vector<int>& ranks) {
  Told& told = open_.emplace_back(Told{bytes, {}});
  told.left.reserve(ranks.size());
  for (int rank : ranks) {
    Call call = message(Op::send, rank, tag);
    call.in = &told.bytes;
    call.in_count = sizeof told.bytes;
    try {
      if (Transfer* transfer = lane.start(call)) told.left.push_back(transfer);
    } catch (const Error&) {
      // It has left and needs nothing any more, or it is lost, or the lane has failed: whoever waits for one of these is told
      // so by the lane itself.
    }
  }
  poll(told);
  if (told.left.empty()) open_.pop_back();
}

void Tellings::poll(Told& told) noexcept {
  std::erase_if(told.left, [](Transfer* transfer) {
    try {
      if (transfer->poll() != Poll::complete) return false;
    } catch (const Error&) {   // as above
    }
    transfer->release();
    return true;
  });
}

void Tellings::poll() noexcept {
  for (Told& told : open_) poll(told);
  std::erase_if(open_, [](const Told& told) { return told.left.empty(); });
}

void Tellings::drop() noexcept {
  for (const Told& told : open_) {
    for (Transfer* transfer : told.left) transfer->release();
  }
  open_.clear();
}

SizeQuestion::SizeQuestion(LaneState& lane, int tag, std::int64_t own_bytes)
    : lane_(lane), totals_{own_bytes}, messages_(*lane.filled, in_host_memory, tag) {
  ++lane_.active;
}

void SizeQuestion::ask(const std::vector<int>& ranks) {
  totals_.resize(1 + ranks.size(), totals_.front());
  for (std::size_t i = 0; i < ranks.size(); ++i) messages_.recv(&totals_[1 + i], sizeof totals_[1 + i], ranks[i]);
  lane_.filled->progress();
}

SizeQuestion::~SizeQuestion() {
  for (Transfer* transfer : messages_.abandon()) transfer->release();
  --lane_.active;
}

bool SizeQuestion::answered() { return messages_.poll() == 0; }

std::int64_t SizeQuestion::bytes() const { return *std::max_element(totals_.begin(), totals_.end()); }

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

bool SizeAgreement::decides(const Call& call) const { return is_uneven(call.op) && kinds_[kind_of(call)].by_size; }

SizeAgreement::Decision SizeAgreement::next(const Call& call) {
  const std::size_t index = kind_of(call);
  // A tag for each kind: within one, receives come in the order of the sends; across kinds they need not.
  const int tag = -1 - algorithms::collective_tags - static_cast<int>(index);
  static_assert(algorithms::collective_tags + static_cast<int>(kinds) <= internal_tags);
  Kind& kind = kinds_[index];
  const bool first_ones = kind.issued < size_distance;
  Round& round = kind.rounds[kind.issued++ % size_distance];
  const Round earlier = round;
  // The root of a rooted operation knows all its counts, so it tells the others; otherwise each tells its own total.
  round = {tensor_bytes(call, 1), rooted(call.op) ? call.root : -1};
  if (round.root < 0 || round.root == rank_) lane_->tellings.tell(*lane_->filled, tag, round.bytes, others_);
  if (first_ones) return {};
  const bool known = earlier.root < 0 || earlier.root == rank_;
  auto question = std::make_unique<SizeQuestion>(*lane_, tag, known ? earlier.bytes : 0);
  question->ask(who_knows(earlier));
  if (!question->answered()) return {.open = std::move(question)};
  return {.bytes = question->bytes()};
}

/// Besides this rank.
std::vector<int> SizeAgreement::who_knows(const Round& round) const {
  if (round.root < 0) return others_;
  return round.root == rank_ ? std::vector<int>{} : std::vector<int>{round.root};
}

}  // namespace medley::core
