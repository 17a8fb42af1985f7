// medley plan --sweep: the same plan over a range of sequences, model sizes or layouts; the figures of the
// communication paper (volume by parallelism, message sizes, share of small messages) as a table and JSON.
#include <fmt/format.h>

#include <atomic>
#include <medley/error.hpp>
#include <set>
#include <thread>

#include "cli/command.hpp"
#include "cli/plan.hpp"
#include "cli/table.hpp"
#include "model/read_layout.hpp"

namespace medley::cli {
namespace {

using plan::Count;

struct Axis {
  std::string key;
  std::vector<std::string> values;
};

Axis read_axis(const std::string& text) {
  const auto equals = text.find('=');
  if (equals == std::string::npos)
    throw Error(ErrorKind::invalid, fmt::format("--sweep '{}' is not KEY=A:B", text));
  Axis axis{plan::plain_key(text.substr(0, equals)), {}};
  const std::string values = text.substr(equals + 1);
  const auto ends = plan::split(values, ':');
  if (ends.size() == 1) {
    axis.values = plan::split(values, ',');
    if (axis.values.size() == 1 && axis.values[0].empty())
      throw Error(ErrorKind::invalid, fmt::format("--sweep '{}' names no values", text));
    return axis;
  }
  const Count first = plan::parse_count(ends[0], "--sweep", axis.key),
              last = plan::parse_count(ends[1], "--sweep", axis.key);
  const Count step = ends.size() > 2 ? plan::parse_count(ends[2], "--sweep", axis.key) : 0;
  if (ends.size() > 3 || first < 1 || last < first || step < 0)
    throw Error(ErrorKind::invalid,
                fmt::format("--sweep '{}' is no range: A:B with 1 ≤ A ≤ B, or A:B:STEP", text));
  for (Count v = first; v <= last && axis.values.size() <= 100000; v = step > 0 ? v + step : v * 2)
    axis.values.push_back(std::to_string(v));
  return axis;
}

// Keys of the model; widths that depend on others follow in proportion.
bool set_model_key(plan::Model& m, const std::string& key, const std::string& value) {
  const auto number = [&] { return plan::parse_count(value, "--sweep", key); };
  if (key == "layers" || key == "num_layers")
    m.layers = number();
  else if (key == "vocab")
    m.vocab = number();
  else if (key == "ffn")
    m.ffn = number();
  else if (key == "experts")
    m.experts = number();
  else if (key == "heads" || key == "a") {
    const Count heads = number();
    if (heads < 1 || m.hidden % heads != 0)
      throw Error(ErrorKind::invalid,
                  fmt::format("--sweep heads: hidden {} is not divisible by {}", m.hidden, heads));
    m.kv_heads = m.kv_heads == m.heads ? heads : m.kv_heads;
    m.heads = heads;
    m.head_dim = m.hidden / heads;
  } else if (key == "hidden" || key == "h") {
    const Count hidden = number();
    if (hidden < 1 || hidden > (Count{1} << 24) || hidden % m.heads != 0)
      throw Error(ErrorKind::invalid,
                  fmt::format("--sweep hidden: {} is not divisible by {} heads", hidden, m.heads));
    m.ffn = m.ffn * hidden / m.hidden;
    m.moe_ffn = m.moe_ffn * hidden / m.hidden;
    m.hidden = hidden;
    m.head_dim = hidden / m.heads;
  } else {
    return false;
  }
  return true;
}

struct Point {
  std::vector<std::string> values;
  nlohmann::ordered_json json;
  std::map<std::string, plan::Total> totals;
  plan::Total all;
  plan::SmallShare small;
  Count memory = 0;
  double step_us = 0, tflops = 0;
  bool fits = true;
  std::string refused;
};

class Sweep {
 public:
  explicit Sweep(const PlanRequest& request)
      : request_(request),
        framework_(framework_of(request)),
        model_(model_of(request)),
        layout_(layout_of(request)),
        machine_(machine_of(request)) {
    std::size_t size = 1;
    for (const std::string& text : request.sweeps) {
      axes_.push_back(read_axis(text));
      size *= axes_.back().values.size();
      plan::Layout layout = layout_;  // a misspelt key is an error of the command, not of one point
      plan::Model model = model_;
      const Axis& axis = axes_.back();
      if (axis.key != "model" && !plan::set_layout_key(layout, axis.key, axis.values[0], "--sweep") &&
          !set_model_key(model, axis.key, axis.values[0])) {
        throw Error(ErrorKind::invalid, fmt::format("--sweep key '{}' is not known", axis.key));
      }
      if (size > 200000)
        throw Error(ErrorKind::invalid,
                    fmt::format("--sweep makes {} points or more; at most 200000 are planned", size));
    }
    points_.resize(size);
  }

  void run() {
    std::atomic<std::size_t> next{0};
    const auto work = [&] {
      for (std::size_t i = next++; i < points_.size(); i = next++) plan_point(i);
    };
    std::vector<std::thread> threads;
    const unsigned count = std::min<unsigned>(std::max(1u, std::thread::hardware_concurrency()),
                                              static_cast<unsigned>(points_.size()));
    for (unsigned i = 1; i < count; ++i) threads.emplace_back(work);
    work();
    for (std::thread& thread : threads) thread.join();
  }

  nlohmann::ordered_json json() const {
    nlohmann::ordered_json out = {{"model", plan::to_json(model_)},
                                  {"framework", plan::name(framework_)},
                                  {"sweep", nlohmann::ordered_json::array()},
                                  {"points", nlohmann::ordered_json::array()}};
    for (const Axis& axis : axes_) out["sweep"].push_back({{"key", axis.key}, {"values", axis.values}});
    for (const Point& p : points_) out["points"].push_back(p.json);
    return out;
  }

  std::string table() const {
    std::set<std::string> groups;
    for (const Point& p : points_) {
      for (const auto& [group, total] : p.totals) groups.insert(group);
    }
    std::vector<std::string> header;
    for (const Axis& axis : axes_) header.push_back(axis.key);
    for (const std::string& group : groups) header.push_back(group);
    for (const char* more : {"all on the wire", "messages", "small", "memory"}) header.emplace_back(more);
    if (machine_) header.insert(header.end(), {"fits", "step ms", "TFLOP/s/GPU"});
    Table table(header);
    for (const Point& p : points_) {
      std::vector<std::string> row = p.values;
      if (!p.refused.empty()) {
        row.resize(header.size() - 1, "–");
        row.push_back("refused: " + p.refused);
      } else {
        for (const std::string& group : groups)
          row.push_back(p.totals.count(group) ? size_text(p.totals.at(group).wire_bytes) : "–");
        row.insert(row.end(), {size_text(p.all.wire_bytes), std::to_string(p.all.count),
                               fmt::format("{:.1f} %", 100 * p.small.of_count),
                               size_text(static_cast<double>(p.memory))});
        if (machine_) {
          row.insert(row.end(), {p.fits ? "yes" : "no", fmt::format("{:.2f}", p.step_us * 1e-3),
                                 fmt::format("{:.1f}", p.tflops)});
        }
      }
      table.add(row);
    }
    return table.str();
  }

 private:
  void plan_point(std::size_t index) {
    Point& point = points_[index];
    plan::Model model = model_;
    plan::Layout layout = layout_;
    std::size_t rest = index;
    point.values.resize(axes_.size());
    for (std::size_t a = axes_.size(); a-- > 0;) {
      point.values[a] = axes_[a].values[rest % axes_[a].values.size()];
      rest /= axes_[a].values.size();
    }
    for (std::size_t a = 0; a < axes_.size(); ++a) point.json[axes_[a].key] = point.values[a];
    try {
      for (std::size_t a = 0; a < axes_.size(); ++a) {
        const std::string& key = axes_[a].key;
        if (key == "model")
          model = plan::read_model(point.values[a]);
        else if (!plan::set_layout_key(layout, key, point.values[a], "--sweep"))
          set_model_key(model, key, point.values[a]);
      }
      plan::check(model, "--sweep");
      fill(point, make_plan(model, layout, framework_, -1, machine_));
    } catch (const Error& error) {
      point.refused = error.what();
      point.json["refused"] = error.what();
    }
  }

  void fill(Point& point, const PlanOutcome& outcome) const {
    for (const auto& [group, total] : plan::totals_by_group(outcome.rows))
      point.totals[std::string(group)] = total;
    point.all = plan::total_of(outcome.rows);
    point.small = plan::small_share(outcome.rows, request_.small);
    point.memory = outcome.memory.total();
    point.json.update(
        {{"world", outcome.layout.world()},
         {"rank", outcome.rank},
         {"parameters", plan::count_parameters(outcome.model).total},
         {"totals", plan::to_json(plan::totals_by_group(outcome.rows))},
         {"total",
          {{"bytes", point.all.bytes}, {"wire_bytes", point.all.wire_bytes}, {"count", point.all.count}}},
         {"histogram", plan::to_json(plan::histogram(outcome.rows))},
         {"small",
          {{"limit", point.small.limit},
           {"share_of_count", point.small.of_count},
           {"share_of_bytes", point.small.of_bytes}}},
         {"memory", cost::to_json(outcome.memory)}});
    if (!machine_) return;
    point.step_us = outcome.time.step_us;
    point.tflops = outcome.time.tflops_per_gpu;
    point.fits = outcome.fits();
    add_time(point.json, outcome);
  }

  const PlanRequest& request_;
  plan::Framework framework_;
  plan::Model model_;
  plan::Layout layout_;
  std::optional<cost::Machine> machine_;
  std::vector<Axis> axes_;
  std::vector<Point> points_;
};

}  // namespace

int run_sweep(const PlanRequest& request) {
  Sweep sweep(request);
  sweep.run();
  write_json(request.json, sweep.json());
  if (request.json != "-") fmt::print("wire bytes of one rank and step, by group\n{}", sweep.table());
  return 0;
}

}  // namespace medley::cli
