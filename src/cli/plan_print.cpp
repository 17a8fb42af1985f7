// How `medley plan` shows a plan: on the screen and as JSON.
#include <fmt/format.h>

#include <algorithm>

#include "cli/plan.hpp"
#include "cli/table.hpp"

namespace medley::cli {

using plan::Count;

std::string size_text(double bytes) {
  static constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  int unit = 0;
  while (bytes >= 1024 && unit < 5) {
    bytes /= 1024;
    ++unit;
  }
  if (unit == 0) return fmt::format("{:.0f} B", bytes);
  return fmt::format("{:.{}f} {}", bytes, bytes < 10 ? 2 : bytes < 100 ? 1 : 0, units[unit]);
}

namespace {

std::string layout_text(const plan::Layout& l) {
  std::string text = fmt::format("dp={},tp={},pp={}", l.dp, l.tp, l.pp);
  if (l.virtual_stages > 1) text += fmt::format(",vp={}", l.virtual_stages);
  if (l.cp > 1) text += fmt::format(",cp={}", l.cp);
  if (l.ep > 1) text += fmt::format(",ep={}", l.ep);
  if (l.sp) text += ",sp=on";
  if (l.zero > 0) text += fmt::format(",zero={}", l.zero);
  return text;
}

// Rows that differ in size alone (gradient buckets, fetches) are shown as one with the range of sizes.
struct Shown {
  plan::Row row;
  Count smallest = 0, largest = 0, bytes = 0;
  double wire = 0;
};
std::vector<Shown> shown_rows(const std::vector<plan::Row>& rows, bool all) {
  std::vector<Shown> out;
  for (const plan::Row& r : rows) {
    const auto same = std::find_if(out.begin(), out.end(), [&](const Shown& s) {
      return !all && s.row.op == r.op && s.row.group == r.group && s.row.group_size == r.group_size &&
             s.row.phase == r.phase && s.row.exposed == r.exposed && s.row.why == r.why;
    });
    const bool known = same != out.end();
    Shown& s = known ? *same : out.emplace_back(Shown{r, r.bytes, r.bytes, 0, 0});
    if (known) s.row.count += r.count;
    s.smallest = std::min(s.smallest, r.bytes);
    s.largest = std::max(s.largest, r.bytes);
    s.bytes += r.bytes * r.count;
    s.wire += r.wire();
  }
  return out;
}

void print_head(const PlanOutcome& o) {
  const plan::Parameters p = plan::count_parameters(o.model);
  fmt::print("{}: {} parameters ({:.2f} B){}\n", o.model.name, p.total, static_cast<double>(p.total) / 1e9,
             o.model.moe() ? fmt::format(", {:.2f} B active", static_cast<double>(p.active) / 1e9) : "");
  const plan::Layout& l = o.layout;
  const plan::Coordinates at = plan::coordinates(l, o.rank);
  fmt::print("{} on {} ranks: {}; {} micro-batches of {} × {} tokens in {}\n", plan::name(o.framework),
             l.world(), layout_text(l), l.micro_batches(), l.micro_batch, l.seq, name(l.dtype));
  fmt::print("assumed: {}\n", plan::assumptions(o.model, o.layout, o.framework));
  fmt::print("rank {} (dp {}, tp {}, pp {}, cp {}), one step\n\n", o.rank, at.dp, at.tp, at.pp, at.cp);
}

}  // namespace

nlohmann::ordered_json plan_json(const PlanOutcome& o, Count small) {
  const plan::SmallShare share = plan::small_share(o.rows, small);
  const plan::Total all = plan::total_of(o.rows);
  nlohmann::ordered_json json = {
      {"model", plan::to_json(o.model)},
      {"layout", plan::to_json(o.layout)},
      {"framework", plan::name(o.framework)},
      {"assumptions", plan::assumptions(o.model, o.layout, o.framework)},
      {"world", o.layout.world()},
      {"rank", o.rank},
      {"rows", plan::to_json(o.rows)},
      {"totals", plan::to_json(plan::totals_by_group(o.rows))},
      {"total", {{"bytes", all.bytes}, {"wire_bytes", all.wire_bytes}, {"count", all.count}}},
      {"histogram", plan::to_json(plan::histogram(o.rows))},
      {"small",
       {{"limit", share.limit}, {"share_of_count", share.of_count}, {"share_of_bytes", share.of_bytes}}},
      {"memory", cost::to_json(o.memory)},
      {"textbook", o.textbook}};
  add_time(json, o);
  return json;
}

void print_plan(const PlanOutcome& o, const PlanRequest& request) {
  print_head(o);
  Table rows({"op", "group", "n", "bytes", "count", "volume", "phase", "exposed", "why"});
  for (const Shown& s : shown_rows(o.rows, request.all_rows)) {
    const std::string bytes =
        s.smallest == s.largest ? fmt::format("{}", s.largest) : fmt::format("{}–{}", s.smallest, s.largest);
    rows.add({std::string(name(s.row.op)), std::string(s.row.group), std::to_string(s.row.group_size), bytes,
              std::to_string(s.row.count), size_text(static_cast<double>(s.bytes)),
              std::string(plan::name(s.row.phase)), s.row.exposed ? "yes" : "no", std::string(s.row.why)});
  }
  fmt::print("{}\n", rows.str());

  Table totals({"group", "count", "bytes", "on the wire", o.textbook.empty() ? "" : "textbook"});
  double textbook = 0;
  for (const auto& [group, total] : plan::totals_by_group(o.rows)) {
    const auto known = o.textbook.find(std::string(group));
    if (known != o.textbook.end()) textbook += known->second;
    totals.add({std::string(group), std::to_string(total.count), size_text(static_cast<double>(total.bytes)),
                size_text(total.wire_bytes), known != o.textbook.end() ? size_text(known->second) : ""});
  }
  const plan::Total all = plan::total_of(o.rows);
  totals.add({"all", std::to_string(all.count), size_text(static_cast<double>(all.bytes)),
              size_text(all.wire_bytes), o.textbook.empty() ? "" : size_text(textbook)});
  fmt::print("{}\n", totals.str());

  Table sizes({"size from", "messages", "share", ""});
  for (const plan::Bin& bin : plan::histogram(o.rows)) {
    const double share = static_cast<double>(bin.count) / static_cast<double>(std::max<Count>(1, all.count));
    std::string bar;
    for (int i = 0; i < static_cast<int>(share * 40 + 0.5); ++i) bar += "█";
    sizes.add({size_text(static_cast<double>(bin.low)), std::to_string(bin.count),
               fmt::format("{:.1f} %", 100 * share), bar});
  }
  fmt::print("{}", sizes.str());
  const plan::SmallShare share = plan::small_share(o.rows, request.small);
  fmt::print("{:.1f} % of the messages and {:.4f} % of the bytes are small (up to {})\n\n",
             100 * share.of_count, 100 * share.of_bytes, size_text(static_cast<double>(share.limit)));
  const cost::Memory& m = o.memory;
  const auto text = [](Count bytes) { return size_text(static_cast<double>(bytes)); };
  fmt::print("memory per GPU: {} = parameters {} + gradients {} + optimizer {} + activations {}\n",
             text(m.total()), text(m.parameters), text(m.gradients), text(m.optimizer), text(m.activations));
  print_time(o);
}

}  // namespace medley::cli
