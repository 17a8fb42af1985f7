// Small models and short helpers to plan them, for the tests of this module.
#pragma once

#include <functional>
#include <medley/error.hpp>
#include <string>

#include "model/zoo.hpp"
#include "plan/framework.hpp"
#include "plan/volume.hpp"

namespace medley::plan {

inline Model gpt(Count hidden = 1024, Count heads = 16, Count layers = 8) {
  Model m = *model_from_zoo("gpt2");
  m.name = "gpt";
  m.hidden = hidden;
  m.heads = m.kv_heads = heads;
  m.head_dim = hidden / heads;
  m.layers = layers;
  m.ffn = 4 * hidden;
  m.vocab = 51200;
  m.seq = m.position_rows = 2048;
  return m;
}

inline Model mixture() {
  Model m = gpt();
  m.experts = 8;
  m.top_k = 2;
  m.moe_ffn = 2048;
  return m;
}

inline std::vector<Row> rows(const Model& m, Layout l, Framework f = Framework::textbook, Count rank = 0) {
  check(l, m);
  return rows_of(make_schedule(m, l, f, rank));
}

inline double wire(const std::vector<Row>& rows, std::string_view group) {
  const auto totals = totals_by_group(rows);
  const auto found = totals.find(group);
  return found == totals.end() ? 0 : found->second.wire_bytes;
}

inline Layout layout(int dp, int tp, int pp) {
  Layout l;
  l.dp = dp;
  l.tp = tp;
  l.pp = pp;
  return l;
}

/// Operations of one kind: their number and total bytes.
inline Total operations(const std::vector<Row>& rows, Op op, std::string_view group, Phase phase) {
  Total total;
  for (const Row& r : rows) {
    if (r.op != op || r.group != group || r.phase != phase) continue;
    total.count += r.count;
    total.bytes += r.bytes * r.count;
  }
  return total;
}

/// The message with which `action` is rejected as invalid; empty when it is not.
inline std::string refusal(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.kind() == ErrorKind::invalid ? error.what() : std::string("wrong kind: ") + error.what();
  }
  return {};
}

}  // namespace medley::plan
