// Reading models: each format, its pitfalls, and errors that name file and key.
#include "model/read_model.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <medley/error.hpp>

namespace medley::model {
namespace {

using nlohmann::json;
using testing::HasSubstr;

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::invalid);
    return error.what();
  }
  ADD_FAILURE() << "nothing was refused";
  return {};
}

const json llama = {{"model_type", "llama"},       {"hidden_size", 4096},
                    {"intermediate_size", 14336},  {"num_hidden_layers", 32},
                    {"num_attention_heads", 32},   {"num_key_value_heads", 8},
                    {"vocab_size", 128256},        {"max_position_embeddings", 8192},
                    {"tie_word_embeddings", false}};
const json deepseek_v3 = {{"model_type", "deepseek_v3"},   {"hidden_size", 7168},
                          {"intermediate_size", 18432},    {"num_hidden_layers", 61},
                          {"num_attention_heads", 128},    {"num_key_value_heads", 128},
                          {"vocab_size", 129280},          {"max_position_embeddings", 163840},
                          {"moe_intermediate_size", 2048}, {"n_routed_experts", 256},
                          {"n_shared_experts", 1},         {"num_experts_per_tok", 8},
                          {"first_k_dense_replace", 3},    {"q_lora_rank", 1536},
                          {"kv_lora_rank", 512},           {"qk_nope_head_dim", 128},
                          {"qk_rope_head_dim", 64},        {"v_head_dim", 128},
                          {"moe_layer_freq", 1},           {"tie_word_embeddings", false}};

Count parameters(const json& config) { return count_parameters(model_from_huggingface(config, "config.json")).total; }

json with(json config, const char* key, json value) {
  config[key] = std::move(value);
  return config;
}

}  // namespace

TEST(HuggingFace, Families) {
  EXPECT_EQ(parameters(llama), 8'030'261'248);
  EXPECT_EQ(parameters(deepseek_v3), 671'026'404'352);
  EXPECT_EQ(parameters({{"model_type", "gpt2"},
                        {"n_embd", 1600},
                        {"n_head", 25},
                        {"n_layer", 48},
                        {"n_positions", 1024},
                        {"vocab_size", 50257},
                        {"n_inner", nullptr}}),
            1'557'611'200);
  EXPECT_EQ(parameters({{"model_type", "gptj"},
                        {"n_embd", 4096},
                        {"n_head", 16},
                        {"n_layer", 28},
                        {"n_positions", 2048},
                        {"vocab_size", 50400},
                        {"tie_word_embeddings", false}}),
            6'050'882'784);
  EXPECT_EQ(parameters({{"model_type", "bloom"},
                        {"n_embed", 4096},
                        {"num_attention_heads", 32},
                        {"n_layer", 30},
                        {"vocab_size", 250880}}),
            7'069'016'064);
  EXPECT_EQ(parameters({{"model_type", "falcon"},
                        {"hidden_size", 4544},
                        {"num_attention_heads", 71},
                        {"num_hidden_layers", 32},
                        {"vocab_size", 65024},
                        {"multi_query", true}}),
            6'921'720'704);
  // OPT-350m embeds in 512 dimensions, projects, and has no final norm.
  EXPECT_EQ(parameters({{"model_type", "opt"},
                        {"hidden_size", 1024},
                        {"ffn_dim", 4096},
                        {"num_hidden_layers", 24},
                        {"num_attention_heads", 16},
                        {"vocab_size", 50272},
                        {"max_position_embeddings", 2048},
                        {"word_embed_proj_dim", 512},
                        {"do_layer_norm_before", false}}),
            331'196'416);
  EXPECT_EQ(parameters({{"model_type", "qwen3_moe"},
                        {"hidden_size", 2048},
                        {"intermediate_size", 6144},
                        {"num_hidden_layers", 48},
                        {"num_attention_heads", 32},
                        {"num_key_value_heads", 4},
                        {"head_dim", 128},
                        {"vocab_size", 151936},
                        {"max_position_embeddings", 40960},
                        {"moe_intermediate_size", 768},
                        {"num_experts", 128},
                        {"num_experts_per_tok", 8},
                        {"decoder_sparse_step", 1},
                        {"mlp_only_layers", json::array()},
                        {"tie_word_embeddings", false}}),
            30'532'122'624);
  EXPECT_EQ(parameters({{"model_type", "deepseek_v2"},
                        {"hidden_size", 2048},
                        {"intermediate_size", 10944},
                        {"num_hidden_layers", 27},
                        {"num_attention_heads", 16},
                        {"num_key_value_heads", 16},
                        {"vocab_size", 102400},
                        {"max_position_embeddings", 163840},
                        {"moe_intermediate_size", 1408},
                        {"n_routed_experts", 64},
                        {"n_shared_experts", 2},
                        {"num_experts_per_tok", 6},
                        {"first_k_dense_replace", 1},
                        {"q_lora_rank", nullptr},
                        {"kv_lora_rank", 512},
                        {"qk_nope_head_dim", 128},
                        {"qk_rope_head_dim", 64},
                        {"v_head_dim", 128},
                        {"tie_word_embeddings", false}}),
            15'706'484'224);
}

TEST(HuggingFace, HeadDimensionIsNeverDerivedWhenGiven) {
  const Model m = model_from_huggingface(with(with(llama, "head_dim", 256), "hidden_size", 2560), "config.json");
  EXPECT_EQ(m.head_dim, 256);
  EXPECT_EQ(model_from_huggingface(with(llama, "head_dim", nullptr), "config.json").head_dim, 128);
  EXPECT_EQ(model_from_huggingface(with(llama, "num_key_value_heads", nullptr), "config.json").kv_heads, 32);
}

TEST(HuggingFace, ErrorsNameFileAndKey) {
  for (const char* key :
       {"hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "vocab_size"}) {
    json missing = llama;
    missing.erase(key);
    const std::string error = error_of([&] { parameters(missing); });
    EXPECT_THAT(error, HasSubstr("config.json"));
    EXPECT_THAT(error, HasSubstr(key));
    EXPECT_THAT(error_of([&] { parameters(with(llama, key, "many")); }), HasSubstr(key));
    EXPECT_THAT(error_of([&] { parameters(with(llama, key, -1)); }), HasSubstr(key));
    EXPECT_THAT(error_of([&] { parameters(with(llama, key, 1.5)); }), HasSubstr(key));
    EXPECT_THAT(error_of([&] { parameters(with(llama, key, 18446744073709551615ull)); }), HasSubstr(key));
  }
  EXPECT_THAT(error_of([] { parameters(with(llama, "model_type", "mamba")); }), HasSubstr("mamba"));
  EXPECT_THAT(error_of([] { parameters(with(llama, "num_key_value_heads", 5)); }), HasSubstr("num_key_value_heads 5"));
  EXPECT_THAT(error_of([] { parameters(with(llama, "num_attention_heads", 33)); }),
              HasSubstr("num_attention_heads 33"));
  EXPECT_THAT(error_of([] {
                parameters({{"model_type", "gpt2"},
                            {"n_embd", 8},
                            {"hidden_size", 16},
                            {"n_head", 1},
                            {"n_layer", 1},
                            {"n_positions", 1},
                            {"vocab_size", 1}});
              }),
              HasSubstr("n_embd is 8 but hidden_size is 16"));
}

TEST(Inline, ShortAndLongSpellings) {
  const Model a = read_model("h=3072,a=32,layers=30,vocab=51200,seq=2048"),
              b = read_model(
                  "hidden_size=3072,num_attention_heads=32,num_hidden_layers=30,vocab_size=51200,max_"
                  "position_embeddings=2048");
  EXPECT_EQ(count_parameters(a).total, count_parameters(b).total);
  EXPECT_EQ(a.ffn, 12288);
  EXPECT_EQ(a.head_dim, 96);
  EXPECT_THAT(error_of([] { read_model("h=3072,a=32,layers=30,seq=2048"); }), HasSubstr("vocab_size"));
  EXPECT_THAT(error_of([] { read_model("h=3072,hidden=4096,a=32,layers=30,vocab=51200,seq=2048"); }),
              HasSubstr("hidden is 4096"));
  EXPECT_THAT(error_of([] { read_model("h=3072,a=32,layers=30,vocab=51200,seq=2048,colour=red"); }),
              HasSubstr("colour"));
  EXPECT_THAT(error_of([] { read_model("no-such-model"); }), HasSubstr("no-such-model"));
}

TEST(NeoX, VocabularyIsPaddedAndGatedWidthsAreAThird) {
  const std::string base =
      "{\"num-layers\": 32, \"hidden-size\": 2560, \"num_attention_heads\": 32, seq_length: 2048, pos-emb: "
      "rotary, no-weight-tying: true, gpt_j_residual: true,\n";
  const Model pythia = model_from_neox(base + "model_parallel_size: 1}", "2-8B.yml");
  EXPECT_EQ(count_parameters(pythia).total, 2'775'208'960);  // Pythia-2.8B with its 50,304 rows
  EXPECT_EQ(model_from_neox(base + "model_parallel_size: 4}", "2-8B.yml").vocab % 512, 0);
  const Model gated = model_from_neox(base + "activation: swiglu, intermediate_size: 20736}", "x.yml");
  EXPECT_TRUE(gated.gated);
  EXPECT_EQ(gated.ffn, 6912);
  EXPECT_THAT(error_of([&] { model_from_neox("num_layers: 2", "x.yml"); }), HasSubstr("x.yml: hidden_size"));
  EXPECT_THAT(error_of([&] { model_from_neox("a: [", "x.yml"); }), HasSubstr("x.yml"));
  EXPECT_THAT(error_of([&] { model_from_neox("hidden-size: 2\nhidden_size: 3", "x.yml"); }), HasSubstr("hidden_size"));
}

TEST(Megatron, Arguments) {
  const std::string script =
      "GPT_ARGS=\"\n  --num-layers 96 \\\n --hidden-size=12288 --num-attention-heads 96 # heads\n "
      "--seq-length 2048 --max-position-embeddings 2048 --vocab-size 50257 --tensor-model-parallel-size 8\"";
  const Model m = model_from_megatron(parse_arguments(script), "gpt.sh");
  EXPECT_EQ(m.vocab, 51200);
  EXPECT_EQ(m.ffn, 49152);
  EXPECT_EQ(count_parameters(m).total, 174'615'846'912);
  const Model llama_like = model_from_megatron(
      parse_arguments("--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 4096 "
                      "--swiglu --vocab-size 32000 --normalization RMSNorm --disable-bias-linear "
                      "--untie-embeddings-and-output-weights --position-embedding-type rope"),
      "x");
  EXPECT_EQ(llama_like.ffn, 10880);
  EXPECT_THAT(error_of([] { model_from_megatron(parse_arguments("--hidden-size 8"), "x.sh"); }),
              HasSubstr("x.sh: --num-layers"));
}

}  // namespace medley::model
