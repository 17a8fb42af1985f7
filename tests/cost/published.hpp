// Published measurements that the time model is compared with, as steps it can run. It is fitted to none of
// them.
#pragma once

#include <string>
#include <vector>

#include "cost/calibrate.hpp"

namespace medley::cost::published {

inline Model gpt(Count hidden, Count heads, Count layers) {
  Model m;
  m.hidden = hidden;
  m.heads = m.kv_heads = heads;
  m.head_dim = hidden / heads;
  m.layers = layers;
  m.ffn = 4 * hidden;
  m.vocab = 51200;
  m.seq = 2048;
  m.positions = Positions::learned;
  m.position_rows = m.seq;
  m.tied_embeddings = m.fused_qkv = true;
  return m;
}

struct Row {
  std::string name;
  MeasuredStep step;
};

/// Korthikanti et al. 2022, Table 5: seconds per iteration on A100, full recompute and sequence parallelism
/// with selective recompute; t = 8, d = 1.
inline std::vector<Row> korthikanti() {
  struct Published {
    const char* name;
    Count hidden, heads, layers, micro_batch, global_batch;
    int pp, virtual_stages;
    double full_s, selective_s;
  };
  std::vector<Row> rows;
  for (const Published& p : {Published{"22B", 6144, 64, 48, 4, 4, 1, 1, 1.42, 1.10},
                             {"175B", 12288, 96, 96, 1, 64, 8, 3, 18.13, 13.75},
                             {"530B", 20480, 128, 105, 1, 280, 35, 3, 49.05, 37.83},
                             {"1T", 25600, 160, 128, 1, 512, 64, 1, 94.42, 71.49}}) {
    for (const bool selective : {false, true}) {
      MeasuredStep step;
      step.model = gpt(p.hidden, p.heads, p.layers);
      Layout& l = step.layout;
      l.tp = 8;
      l.pp = p.pp;
      l.virtual_stages = p.pp > 1 ? p.virtual_stages : 1;
      l.sp = selective;
      l.recompute = selective ? Recompute::selective : Recompute::full;
      l.micro_batch = p.micro_batch;
      l.global_batch = p.global_batch;
      l.dtype = DType::f16;
      l.flags.flash_attention = false;
      check(l, step.model);
      step.us = (selective ? p.selective_s : p.full_s) * 1e6;
      rows.push_back({std::string(p.name) + (selective ? " selective" : " full"), step});
    }
  }
  return rows;
}

}  // namespace medley::cost::published
