#include "cost/stage.hpp"

#include <algorithm>
#include <array>
#include <optional>

namespace medley::cost {
namespace {

double total(const Spent& spent) {
  double sum = 0;
  for (const double us : spent) sum += us;
  return sum;
}

class Folder {
 public:
  Folder(const Schedule& schedule, const Layout& layout, const std::vector<EntryCost>& costs, Count rank,
         const Overlap& overlap)
      : schedule_(schedule),
        layout_(layout),
        costs_(costs),
        stage_(coordinates(layout, rank).pp),
        overlap_(overlap),
        folded_(schedule.blocks().size()),
        known_(schedule.blocks().size(), false) {}

  StageProgram run() {
    program_.overlap = overlap_;
    unfold(0);
    return std::move(program_);
  }

 private:
  using BlockId = Schedule::BlockId;

  struct Folded {
    Spent spent{};
    double host_us = 0;
  };

  /// The time of a block from start to end, or nothing when it depends on other stages or on operations that
  /// overlap the block's start or end.
  const std::optional<Folded>& fold(BlockId id) {
    if (!known_[id]) {
      folded_[id] = evaluate(id);
      known_[id] = true;
    }
    return folded_[id];
  }

  std::optional<Folded> evaluate(BlockId id) {
    Folded out;
    double now = 0, busy = 0;
    std::array<double, group_count> free{};
    std::map<int, UnderWay> under_way;
    for (const Schedule::Node& node : schedule_.block(id)) {
      if (node.is_block) {
        const std::optional<Folded>& inner = fold(node.index);
        if (!inner) return std::nullopt;
        const double repeat = static_cast<double>(node.repeat);
        const double us = total(inner->spent) * repeat, stretched = overlap_.stretched(us, now, busy);
        for (std::size_t i = 0; i < cause_count; ++i)
          out.spent[i] += inner->spent[i] * repeat * (us > 0 ? stretched / us : 1);
        out.host_us += inner->host_us * repeat;
        now += stretched;
        continue;
      }
      const Entry& entry = schedule_.entries()[node.index];
      const EntryCost& cost = costs_[node.index];
      out.host_us += cost.host_us;
      if (entry.kind == Kind::wait) {
        const auto op = under_way.find(entry.token);
        if (op == under_way.end()) return std::nullopt;
        const double done = op->second.done(now);
        at(out.spent, op->second.cause) += std::max(0.0, done - now);
        now = std::max(now, done);
        under_way.erase(op);
      } else if (entry.kind == Kind::comm) {
        if (depends_on_others(entry, cost)) return std::nullopt;
        if (entry.op == Op::recv) continue;  // of an exchange within the stage: its send takes the time
        const double end = std::max(now, free[cost.link]) + cost.us;
        free[cost.link] = end;
        if (entry.token != 0) {
          under_way[entry.token].join(end, cost);
          busy = std::max(busy, end);
        } else {
          at(out.spent, cost.cause) += end - now;
          now = end;
        }
      } else {
        const double us = overlap_.stretched(cost.us, now, busy);
        at(out.spent, cost.cause) += us;
        now += us;
      }
    }
    if (!under_way.empty()) return std::nullopt;
    return out;
  }

  /// Ranks of one stage do the same at the same time, so messages among them (a context ring) are an exchange
  /// whose time is known. Other messages wait for another stage.
  bool within_stage(const Entry& entry) const {
    return (entry.op == Op::send || entry.op == Op::recv) && coordinates(layout_, entry.peer).pp == stage_;
  }
  bool depends_on_others(const Entry& entry, const EntryCost& cost) const {
    return cost.across_stages || ((entry.op == Op::send || entry.op == Op::recv) && !within_stage(entry));
  }

  void unfold(BlockId id) {
    const Schedule::Block& block = schedule_.block(id);
    for (std::size_t i = 0; i < block.size(); ++i) {
      const Schedule::Node& node = block[i];
      if (node.is_block) {
        unfold_inner(node);
        continue;
      }
      const Entry& entry = schedule_.entries()[node.index];
      const EntryCost& cost = costs_[node.index];
      if (entry.kind == Kind::comm && (entry.op == Op::send || entry.op == Op::recv)) {
        if (!within_stage(entry)) i = add_transfers(block, i);
        else if (entry.op == Op::send) add_entry(entry, cost);
      } else {
        add_entry(entry, cost);
      }
    }
  }

  void unfold_inner(const Schedule::Node& node) {
    if (const std::optional<Folded>& inner = fold(node.index)) {
      add_folded(node.index, *inner, static_cast<double>(node.repeat));
      return;
    }
    for (Count i = 0; i < node.repeat; ++i) unfold(node.index);
  }

  void add_folded(BlockId id, const Folded& folded, double repeat) {
    const auto [place, fresh] = index_of_.try_emplace(id, static_cast<std::uint32_t>(program_.spent.size()));
    if (fresh) program_.spent.push_back(folded.spent);
    StageItem item;
    item.block = place->second;
    item.repeat = repeat;
    item.host_us = folded.host_us;
    program_.items.push_back(item);
    loose_ = false;
  }

  /// Consecutive single kernels between two operations become one item.
  void spend(const EntryCost& cost) {
    if (program_.items.empty() || program_.items.back().type != StageItem::Type::spend || !loose_) {
      StageItem item;
      item.block = static_cast<std::uint32_t>(program_.spent.size());
      program_.spent.emplace_back();
      program_.items.push_back(item);
    }
    at(program_.spent.back(), cost.cause) += cost.us;
    program_.items.back().host_us += cost.host_us;
    loose_ = true;
  }

  void add_entry(const Entry& entry, const EntryCost& cost) {
    if (entry.kind != Kind::comm && entry.kind != Kind::wait) return spend(cost);
    StageItem item;
    item.type = entry.kind == Kind::wait ? StageItem::Type::wait
                : cost.across_stages     ? StageItem::Type::meet
                : entry.token != 0       ? StageItem::Type::async
                                         : StageItem::Type::comm;
    item.cost = cost;
    item.token = entry.token;
    program_.items.push_back(item);
  }

  /// A send or receive with its batch; returns the index of the last node consumed.
  std::size_t add_transfers(const Schedule::Block& block, std::size_t at_node) {
    const Entry& head = schedule_.entries()[block[at_node].index];
    StageItem item;
    item.type = StageItem::Type::transfer;
    item.cost = costs_[block[at_node].index];
    item.token = head.token;
    item.first = static_cast<std::uint32_t>(program_.transfers.size());
    std::size_t last = at_node;
    for (std::size_t i = at_node; i < block.size() && !block[i].is_block; ++i) {
      const Entry& entry = schedule_.entries()[block[i].index];
      const bool transfer = entry.kind == Kind::comm && (entry.op == Op::send || entry.op == Op::recv);
      if (!transfer || (i > at_node && (head.batch == 0 || entry.batch != head.batch))) break;
      program_.transfers.push_back({.send = entry.op == Op::send,
                                    .stage = coordinates(layout_, entry.peer).pp,
                                    .us = costs_[block[i].index].us});
      last = i;
    }
    item.last = static_cast<std::uint32_t>(program_.transfers.size());
    program_.items.push_back(item);
    return last;
  }

  const Schedule& schedule_;
  const Layout& layout_;
  const std::vector<EntryCost>& costs_;
  int stage_;
  Overlap overlap_;
  std::vector<std::optional<Folded>> folded_;
  std::vector<bool> known_;
  std::map<BlockId, std::uint32_t> index_of_;
  bool loose_ = false;  ///< whether the last item consists of single kernels, so that the next one may join it
  StageProgram program_;
};

}  // namespace

StageProgram fold_stage(const Schedule& schedule, const Layout& layout, const std::vector<EntryCost>& costs, Count rank,
                        const Overlap& overlap) {
  return Folder(schedule, layout, costs, rank, overlap).run();
}

}  // namespace medley::cost
