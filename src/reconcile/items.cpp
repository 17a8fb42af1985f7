// Both sides in one form: rows of a plan, actions of a schedule and rows of a trace become items.
#include <algorithm>

#include "core/v_forms.hpp"
#include "plan/groups.hpp"
#include "plan/volume.hpp"
#include "reconcile/reconcile.hpp"

namespace medley::reconcile {
namespace {

void add_word(std::vector<std::string>& words, const std::string& word) {
  if (!word.empty() && std::find(words.begin(), words.end(), word) == words.end()) words.push_back(word);
}

/// Adds to the item of the same kind, or makes one.
void add(Items& items, Item item, const std::string& why) {
  if (!is_collective(item.op)) item.ranks.clear();
  const auto same = std::find_if(items.begin(), items.end(), [&](const Item& other) {
    return other.op == item.op && other.ranks == item.ranks && other.bytes == item.bytes &&
           (!item.ranks.empty() || !is_collective(item.op) || other.group == item.group);
  });
  if (same == items.end()) {
    add_word(item.why, why);
    items.push_back(std::move(item));
    return;
  }
  same->count += item.count;
  same->uneven = same->uneven || item.uneven;
  add_word(same->why, why);
  if (same->group.find(item.group) == std::string::npos) same->group += "/" + item.group;
}

}  // namespace

Items expected_items(const plan::Schedule& schedule, const plan::Layout& layout, plan::Count rank) {
  Items items;
  for (const plan::Row& row : plan::rows_of(schedule)) {
    Item item{row.op, {}, std::string(row.group), row.bytes, row.count, row.dtype, {}, false};
    for (const plan::Count member : plan::group_ranks(layout, rank, row.group))
      item.ranks.push_back(static_cast<int>(member));
    add(items, std::move(item), std::string(row.why));
  }
  return items;
}

Items expected_items(const replay::RankSchedule& schedule, double scale) {
  Items items;
  for (const replay::Action& a : schedule.actions) {
    if (a.kind != replay::Kind::comm) continue;
    const auto& ranks = schedule.groups.at(a.group);
    add(items,
        {core::even_form(a.op),
         ranks,
         a.group,
         replay::scaled_bytes(a.bytes, a.dtype, scale),
         1,
         a.dtype,
         {},
         false},
        a.why);
  }
  return items;
}

Items observed_items(const trace::Trace& trace, const trace::Summary& summary) {
  Items items;
  for (const trace::Row& row : summary.rows) {
    const trace::Group& group = trace.groups[row.group];
    if (group.size == 1) continue;  // alone: nothing is sent
    Item item{core::even_form(row.op), group.ranks, group.name, row.bytes,
              row.count,         row.dtype,   {},         core::even_form(row.op) != row.op};
    std::sort(item.ranks.begin(), item.ranks.end());
    add(items, std::move(item), row.phase.empty() ? row.module : row.phase + "/" + row.module);
  }
  return items;
}

}  // namespace medley::reconcile
