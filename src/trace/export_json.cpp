#include <algorithm>
#include <bit>

#include "base/wire_bytes.hpp"
#include "trace/export.hpp"

namespace medley::trace {

using OrderedJson = nlohmann::ordered_json;

namespace {

double wire_of(const Row& row, const Trace& trace) {
  return core::wire_bytes(row.op, row.bytes, std::max(1, trace.groups[row.group].size)) *
         static_cast<double>(row.count);
}

}  // namespace

OrderedJson to_json(const std::vector<Row>& rows, const Trace& trace) {
  OrderedJson out = OrderedJson::array();
  for (const Row& r : rows) {
    const Group& group = trace.groups[r.group];
    OrderedJson row = {
        {"op", name(r.op)},         {"group", group.name},
        {"group_size", group.size}, {"bytes", r.sized ? OrderedJson(r.bytes) : OrderedJson()},
        {"count", r.count},         {"wire_bytes", wire_of(r, trace)},
        {"dtype", name(r.dtype)},   {"phase", r.phase},
        {"module", r.module},       {"exposed", r.exposed_known ? OrderedJson(r.exposed()) : OrderedJson()},
        {"why", r.module},          {"ranks", group.ranks},
        {"backend", r.backend},     {"algorithm", r.algorithm}};
    if (trace.timed) {
      row.update({{"total_us", r.total_us}, {"median_us", r.median_us}, {"p99_us", r.p99_us}});
      if (r.exposed_known)
        row.update({{"exposed_us", r.exposed_us}, {"overlapped_us", std::max(0.0, r.total_us - r.exposed_us)}});
    }
    out.push_back(std::move(row));
  }
  return out;
}

OrderedJson totals_json(const std::vector<Row>& rows, const Trace& trace) {
  OrderedJson out = OrderedJson::object();
  for (const auto& [group, t] : totals_of(rows, trace)) {
    out[group] = {{"bytes", t.bytes}, {"wire_bytes", t.wire_bytes}, {"count", t.count}};
    if (trace.timed) out[group]["total_us"] = t.us;
    if (trace.timed && t.exposed_known) out[group]["exposed_us"] = t.exposed_us;
  }
  return out;
}

OrderedJson to_json(const Sizes& sizes) {
  OrderedJson histogram = OrderedJson::array();
  for (const auto& [low, bin] : sizes.histogram)
    histogram.push_back({{"low", low}, {"count", bin.count}, {"bytes", bin.bytes}});
  return {{"histogram", std::move(histogram)},
          {"small",
           {{"limit", sizes.small},
            {"share_of_count", sizes.small_share_of_count},
            {"share_of_bytes", sizes.small_share_of_bytes}}}};
}

OrderedJson to_json(const Problems& problems, const Trace& trace) {
  OrderedJson out = OrderedJson::array();
  for (const Problem& p : problems.list) {
    OrderedJson ranks = OrderedJson::object();
    for (const auto& [rank, state] : p.ranks) ranks[std::to_string(rank)] = state;
    out.push_back({{"kind", p.kind},
                   {"op", name(p.event.op)},
                   {"group", trace.groups[p.event.group].name},
                   {"sequence", p.event.sequence},
                   {"bytes", p.event.bytes},
                   {"ranks", ranks},
                   {"sentence", p.sentence}});
  }
  return out;
}

OrderedJson to_json(const std::vector<Skew>& skew, const Trace& trace) {
  OrderedJson out = OrderedJson::array();
  for (const Skew& s : skew) {
    out.push_back({{"group", trace.groups[s.group].name},
                   {"op", name(s.op)},
                   {"collectives", s.collectives},
                   {"median_us", s.median_us},
                   {"p99_us", s.p99_us},
                   {"max_us", s.max_us},
                   {"last_rank", s.last_rank},
                   {"last_share", s.last_share},
                   {"late_us", s.late_us}});
  }
  return out;
}

}  // namespace medley::trace
