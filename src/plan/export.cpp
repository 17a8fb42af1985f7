#include "plan/export.hpp"

#include <set>

#include "plan/groups.hpp"

namespace medley::plan {

using Json = nlohmann::ordered_json;

Json to_json(const Parameters& p) {
  return {{"total", p.total},         {"active", p.active},       {"embedding", p.embedding},
          {"positions", p.positions}, {"attention", p.attention}, {"mlp", p.mlp},
          {"experts", p.experts},     {"norms", p.norms},         {"head", p.head}};
}

Json to_json(const Model& m) {
  Json json = {{"name", m.name},     {"family", m.family},     {"hidden", m.hidden},
               {"heads", m.heads},   {"kv_heads", m.kv_heads}, {"head_dim", m.head_dim},
               {"layers", m.layers}, {"ffn", m.ffn},           {"vocab", m.vocab},
               {"seq", m.seq},       {"gated", m.gated},       {"tied_embeddings", m.tied_embeddings}};
  if (m.moe())
    json.update({{"experts", m.experts}, {"top_k", m.top_k}, {"moe_ffn", m.moe_ffn}, {"moe_layers", m.moe_layers()}});
  json["parameters"] = to_json(count_parameters(m));
  return json;
}

Json to_json(const Layout& l) {
  static constexpr const char* pipelines[] = {"1f1b", "gpipe", "interleaved"};
  static constexpr const char* contexts[] = {"ring", "ulysses", "all_gather"};
  static constexpr const char* recomputes[] = {"none", "selective", "full", "per_op"};
  return {{"world", l.world()},
          {"dp", l.dp},
          {"tp", l.tp},
          {"sp", l.sp},
          {"pp", l.pp},
          {"vp", l.virtual_stages},
          {"schedule", pipelines[static_cast<int>(l.pipeline)]},
          {"cp", l.cp},
          {"cp_kind", contexts[static_cast<int>(l.context)]},
          {"ep", l.ep},
          {"etp", l.expert_tensor()},
          {"zero", l.zero},
          {"recompute", recomputes[static_cast<int>(l.recompute)]},
          {"micro_batch", l.micro_batch},
          {"global_batch", l.global_batch},
          {"micro_batches", l.micro_batches()},
          {"seq", l.seq},
          {"dtype", name(l.dtype)}};
}

Json to_json(const std::vector<Row>& rows) {
  Json out = Json::array();
  for (const Row& r : rows) {
    out.push_back({{"op", name(r.op)},
                   {"group", r.group},
                   {"group_size", r.group_size},
                   {"bytes", r.bytes},
                   {"count", r.count},
                   {"wire_bytes", r.wire()},
                   {"dtype", name(r.dtype)},
                   {"phase", name(r.phase)},
                   {"module", r.module},
                   {"exposed", r.exposed},
                   {"why", r.why}});
  }
  return out;
}

Json to_json(const std::map<std::string_view, Total>& totals) {
  Json out = Json::object();
  for (const auto& [group, total] : totals) {
    out[std::string(group)] = {{"bytes", total.bytes}, {"wire_bytes", total.wire_bytes}, {"count", total.count}};
  }
  return out;
}

Json to_json(const std::vector<Bin>& histogram) {
  Json out = Json::array();
  for (const Bin& b : histogram) out.push_back({{"low", b.low}, {"count", b.count}, {"bytes", b.bytes}});
  return out;
}

Json to_json(const Volume& v) {
  return {{"totals", to_json(v.by_group)},
          {"total", {{"bytes", v.all.bytes}, {"wire_bytes", v.all.wire_bytes}, {"count", v.all.count}}},
          {"histogram", to_json(v.histogram)},
          {"small",
           {{"limit", v.small.limit}, {"share_of_count", v.small.of_count}, {"share_of_bytes", v.small.of_bytes}}}};
}

namespace {

Json entry_json(const Entry& e, const Place& at) {
  Json json = {{"kind", name(e.kind)}, {"phase", name(e.phase)}};
  if (e.kind == Kind::wait) {
    json["token"] = e.token;
    return json;
  }
  json["module"] = e.module;
  if (at.micro_batch >= 0) json["micro_batch"] = at.micro_batch;
  if (at.layer >= 0) json["layer"] = at.layer;
  if (at.chunk > 0) json["chunk"] = at.chunk;
  json["dtype"] = name(e.dtype);
  if (e.kind == Kind::gemm)
    json.update(
        {{"m", e.gemm.m}, {"n", e.gemm.n}, {"k", e.gemm.k}, {"batch", e.gemm.batch}, {"layout", e.gemm.layout}});
  if (e.kind == Kind::attention) {
    const Attention& a = e.attention;
    json.update({{"batch", a.batch},
                 {"heads", a.heads},
                 {"kv_heads", a.kv_heads},
                 {"queries", a.queries},
                 {"keys", a.keys},
                 {"head_dim", a.head_dim},
                 {"value_dim", a.value_dim},
                 {"causal", a.causal}});
    if (a.share < 1) json["share"] = a.share;
  }
  if (e.kind == Kind::memory) json.update({{"bytes", e.bytes}, {"kernels", e.kernels}});
  if (e.kind != Kind::comm) return json;
  json.update({{"op", name(e.op)},
               {"group", e.group},
               {"group_size", e.group_size},
               {"bytes", e.bytes},
               {"count", 1},
               {"exposed", e.exposed},
               {"why", e.why}});
  const bool reduces = e.op == Op::all_reduce || e.op == Op::reduce_scatter || e.op == Op::reduce;
  if (reduces) json["reduce"] = name(e.reduce);
  if (e.peer >= 0) json["peer"] = e.peer;
  if (e.token != 0) json["token"] = e.token;
  if (e.batch != 0) json["batch"] = e.batch;
  return json;
}

}  // namespace

Json schedule_json(const Schedule& schedule, const Layout& layout, Count rank, std::span<const double> us) {
  Json out = {{"schema", "medley.schedule/1"}, {"world", layout.world()}, {"rank", rank}, {"layout", to_json(layout)}};
  std::set<std::string_view> groups;
  for (const Entry& e : schedule.entries()) {
    if (e.kind == Kind::comm) groups.insert(e.group);
  }
  out["groups"] = Json::object();
  for (const std::string_view group : groups) out["groups"][std::string(group)] = group_ranks(layout, rank, group);
  const std::vector<Row> rows = rows_of(schedule);
  out["rows"] = to_json(rows);
  out["totals"] = to_json(totals_by_group(rows));
  Json& entries = out["entries"] = Json::array();
  schedule.walk([&](const Entry& e, const Place& at) {
    entries.push_back(entry_json(e, at));
    const auto index = static_cast<std::size_t>(&e - schedule.entries().data());
    if (index < us.size() && e.kind != Kind::comm && e.kind != Kind::wait) entries.back()["us"] = us[index];
  });
  return out;
}

}  // namespace medley::plan
