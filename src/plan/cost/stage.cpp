#include "plan/cost/stage.hpp"

#include <algorithm>
#include <array>
#include <optional>

namespace medley::plan {
namespace {

double total(const Spent& spent) {
  double sum = 0;
  for (const double us : spent) sum += us;
  return sum;
}

class Folder {
 public:
  Folder(const Schedule& schedule, const Layout& layout, const std::vector<EntryCost>& costs)
      : schedule_(schedule),
        layout_(layout),
        costs_(costs),
        folded_(schedule.blocks().size()),
        known_(schedule.blocks().size(), false) {}

  StageProgram run() {
    unfold(0);
    return std::move(program_);
  }

 private:
  using BlockId = Schedule::BlockId;

  /// What a block spends from start to end, or nothing when its time depends on other stages or on operations
  /// that are still under way when it starts or ends. A block's kernels cannot run faster than the host
  /// issues them.
  const std::optional<Spent>& fold(BlockId id) {
    if (!known_[id]) {
      folded_[id] = evaluate(id);
      known_[id] = true;
    }
    return folded_[id];
  }

  std::optional<Spent> evaluate(BlockId id) {
    Spent spent{};
    double now = 0, own = 0, host = 0;
    std::array<double, group_count> free{};
    std::map<int, std::pair<double, Cause>> under_way;
    for (const Schedule::Node& node : schedule_.block(id)) {
      if (node.is_block) {
        const std::optional<Spent>& inner = fold(node.index);
        if (!inner) return std::nullopt;
        const double repeat = static_cast<double>(node.repeat);
        for (std::size_t i = 0; i < cause_count; ++i) spent[i] += (*inner)[i] * repeat;
        now += total(*inner) * repeat;
        continue;
      }
      const Entry& entry = schedule_.entries()[node.index];
      const EntryCost& cost = costs_[node.index];
      host += cost.host_us;
      const double before = now;
      if (entry.kind == Kind::wait) {
        const auto op = under_way.find(entry.token);
        if (op == under_way.end()) return std::nullopt;
        at(spent, op->second.second) += std::max(0.0, op->second.first - now);
        now = std::max(now, op->second.first);
        under_way.erase(op);
      } else if (entry.kind == Kind::comm) {
        if (depends_on_others(entry, cost)) return std::nullopt;
        const double end = std::max(now, free[cost.link]) + cost.us;
        free[cost.link] = end;
        if (entry.token != 0) {
          auto& op = under_way[entry.token];
          op = {std::max(op.first, end), cost.cause};
        } else {
          at(spent, cost.cause) += end - now;
          now = end;
        }
      } else {
        at(spent, cost.cause) += cost.us;
        now += cost.us;
      }
      if (entry.kind != Kind::comm && entry.kind != Kind::wait) own += now - before;
    }
    if (!under_way.empty()) return std::nullopt;
    at(spent, Cause::launch) += std::max(0.0, host - own);
    return spent;
  }

  static bool depends_on_others(const Entry& entry, const EntryCost& cost) {
    return cost.across_stages || entry.op == Op::send || entry.op == Op::recv;
  }

  void unfold(BlockId id) {
    double own = 0, host = 0;
    const Schedule::Block& block = schedule_.block(id);
    for (std::size_t i = 0; i < block.size(); ++i) {
      const Schedule::Node& node = block[i];
      if (node.is_block) {
        unfold_inner(node);
        continue;
      }
      const Entry& entry = schedule_.entries()[node.index];
      const EntryCost& cost = costs_[node.index];
      host += cost.host_us;
      if (entry.kind != Kind::comm) own += cost.us;
      if (entry.kind == Kind::comm && (entry.op == Op::send || entry.op == Op::recv)) {
        i = add_transfers(block, i);
      } else {
        add_entry(entry, cost);
      }
    }
    if (host > own) spend(Cause::launch, host - own);
  }

  void unfold_inner(const Schedule::Node& node) {
    if (const std::optional<Spent>& inner = fold(node.index)) {
      add_folded(node.index, *inner, static_cast<double>(node.repeat));
      return;
    }
    for (Count i = 0; i < node.repeat; ++i) unfold(node.index);
  }

  void add_folded(BlockId id, const Spent& spent, double repeat) {
    const auto [place, fresh] = index_of_.try_emplace(id, static_cast<std::uint32_t>(program_.spent.size()));
    if (fresh) program_.spent.push_back(spent);
    StageItem item;
    item.block = place->second;
    item.repeat = repeat;
    program_.items.push_back(item);
    loose_ = false;
  }

  /// Single kernels between two operations become one stretch.
  void spend(Cause cause, double us) {
    if (us <= 0) return;
    if (program_.items.empty() || program_.items.back().type != StageItem::Type::spend || !loose_) {
      StageItem item;
      item.block = static_cast<std::uint32_t>(program_.spent.size());
      program_.spent.emplace_back();
      program_.items.push_back(item);
    }
    at(program_.spent.back(), cause) += us;
    loose_ = true;
  }

  void add_entry(const Entry& entry, const EntryCost& cost) {
    if (entry.kind != Kind::comm && entry.kind != Kind::wait) return spend(cost.cause, cost.us);
    StageItem item;
    item.type = entry.kind == Kind::wait ? StageItem::Type::wait
                : cost.across_stages     ? StageItem::Type::meet
                : entry.token != 0       ? StageItem::Type::async
                                         : StageItem::Type::comm;
    item.cost = cost;
    item.token = entry.token;
    program_.items.push_back(item);
  }

  /// A send or receive with its batch; returns the index of the last node taken.
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
  std::vector<std::optional<Spent>> folded_;
  std::vector<bool> known_;
  std::map<BlockId, std::uint32_t> index_of_;
  bool loose_ = false;  ///< whether the last stretch is of single kernels, so that the next one may join it
  StageProgram program_;
};

}  // namespace

StageProgram fold_stage(const Schedule& schedule, const Layout& layout, const std::vector<EntryCost>& costs) {
  return Folder(schedule, layout, costs).run();
}

}  // namespace medley::plan
