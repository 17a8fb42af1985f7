#include "model/families.hpp"

#include <array>

namespace medley::model {
namespace {

void no_biases(Model& m) {
  m.qkv_bias = m.projection_bias = m.mlp_bias = false;
}

void gpt2(Model& m) {
  m.positions = Positions::learned;
  m.tied_embeddings = m.fused_qkv = true;
}
void gptj(Model& m) {
  m.norms_per_layer = 1;
  m.qkv_bias = m.projection_bias = false;
  m.head_bias = m.parallel_block = true;
}
void gpt_neox(Model& m) {
  m.fused_qkv = m.parallel_block = true;
}
void opt(Model& m) {
  m.positions = Positions::learned;
  m.tied_embeddings = true;
}
void bloom(Model& m) {
  m.positions = Positions::alibi;
  m.embedding_norm = m.tied_embeddings = m.fused_qkv = true;
}
void falcon(Model& m) {
  no_biases(m);
  m.tied_embeddings = m.fused_qkv = m.parallel_block = true;
  m.norms_per_layer = m.kv_heads > 1 ? 2 : 1;  // the new decoder architecture, with grouped queries, has two
}
void llama(Model& m) {
  no_biases(m);
  m.norm = Norm::rms;
  m.gated = true;
}
void qwen2(Model& m) {
  llama(m);
  m.qkv_bias = true;
}
void qwen3(Model& m) {
  llama(m);
  m.qk_norm = true;
}
void phi(Model& m) {
  m.norms_per_layer = 1;
  m.head_bias = m.parallel_block = true;
}
void phi3(Model& m) {
  llama(m);
  m.fused_qkv = m.fused_gate = true;
}

struct Family {
  std::string_view name;
  void (*apply)(Model&);
};
constexpr std::array<Family, 18> families = {{
    {"gpt2", gpt2},
    {"gptj", gptj},
    {"gpt_neox", gpt_neox},
    {"opt", opt},
    {"bloom", bloom},
    {"falcon", falcon},
    {"llama", llama},
    {"mistral", llama},
    {"mixtral", llama},
    {"qwen2", qwen2},
    {"qwen2_moe", qwen2},
    {"qwen3", qwen3},
    {"qwen3_moe", qwen3},
    {"phi", phi},
    {"phi3", phi3},
    {"deepseek_v2", llama},
    {"deepseek_v3", llama},
    {"gpt", [](Model&) {}},
}};

}  // namespace

bool apply_family(Model& model, std::string_view family) {
  for (const Family& known : families) {
    if (known.name != family) continue;
    model.family = family;
    known.apply(model);
    return true;
  }
  return false;
}

std::string known_families() {
  std::string text;
  for (const Family& known : families) text += (text.empty() ? "" : ", ") + std::string(known.name);
  return text;
}

}  // namespace medley::model
