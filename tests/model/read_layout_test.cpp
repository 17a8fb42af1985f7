// Reading and rejecting layouts.
#include "model/read_layout.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "plan/helpers.hpp"

namespace medley::plan {

using nlohmann::json;
using testing::HasSubstr;

TEST(Layout, Text) {
  const Layout l = read_layout("dp=8,tp=4,pp=2,sp=on,zero=1,vp=2,cp=2,cp_kind=ulysses,recompute=full,grad_dtype=f32");
  EXPECT_EQ(l.world(), 128);
  EXPECT_TRUE(l.sp);
  EXPECT_EQ(l.context, ContextKind::ulysses);
  EXPECT_EQ(l.recompute, Recompute::full);
  EXPECT_EQ(read_layout("world=64,tp=8,pp=2").dp, 4);
  EXPECT_EQ(read_layout("tp=2,ep=8,etp=1").expert_tensor(), 1);
  EXPECT_EQ(read_layout("tp=2,ep=8").expert_tensor(), 2);
  EXPECT_TRUE(read_layout("sp=1").sp);
  EXPECT_THAT(refusal([] { read_layout("sp=4"); }), HasSubstr("cp"));
  EXPECT_THAT(refusal([] { read_layout("dp=0"); }), HasSubstr("dp is 0"));
  EXPECT_THAT(refusal([] { read_layout("dp=two"); }), HasSubstr("two"));
  EXPECT_THAT(refusal([] { read_layout("colour=2"); }), HasSubstr("colour"));
  EXPECT_THAT(refusal([] { read_layout("dp=2,dp=4"); }), HasSubstr("twice"));
  EXPECT_THAT(refusal([] { read_layout("nowhere.json"); }), HasSubstr("nowhere.json"));
  EXPECT_THAT(refusal([] { read_layout("world=10,tp=4"); }), HasSubstr("world 10"));
}

TEST(Layout, DpFollowsFromTheNumberOfRanksAlsoWhereTpChangesLater) {
  const Model model = *model_from_zoo("llama-2-7b");
  Layout l = read_layout("world=64,tp=2");
  EXPECT_EQ(l.dp, 32);
  l.tp = 8;
  check(l, model);
  EXPECT_EQ(l.dp, 8);
  EXPECT_EQ(l.world(), 64);
  l.tp = 3;
  EXPECT_THAT(refusal([&] { check(l, model); }), HasSubstr("world 64 is not a multiple of tp·pp·cp = 3"));
}

TEST(Layout, DpAndTheNumberOfRanksMustAgree) {
  EXPECT_EQ(read_layout("world=64,tp=8,dp=8").dp, 8);
  for (const char* text : {"world=64,dp=1", "dp=16,world=64,tp=8", "gpus=64,dp=32"})
    EXPECT_THAT(refusal([&] { read_layout(text); }), HasSubstr("world 64 contradicts dp"));
}

TEST(Layout, KernelsOfMegatronsRecipes) {
  const Layout l = read_layout("fp8=current,cuda_graphs=partial,recompute_modules=layernorm+moe_act+mla_up_proj");
  EXPECT_TRUE(l.flags.fp8);
  EXPECT_EQ(l.flags.fp8_recipe, Fp8Recipe::current);
  EXPECT_TRUE(l.flags.partial_graphs);
  EXPECT_FALSE(l.flags.cuda_graphs);
  EXPECT_TRUE(l.flags.recompute_modules.norms);
  EXPECT_TRUE(l.flags.recompute_modules.expert_activation);
  EXPECT_TRUE(l.flags.recompute_modules.latent_projections);
  EXPECT_EQ(read_layout("recompute_modules=core_attn").recompute, Recompute::selective);
  EXPECT_TRUE(read_layout("fp8=on").flags.fp8);
  EXPECT_FALSE(read_layout("fp8=off").flags.fp8);
  EXPECT_FALSE(read_layout("bias_activation_fusion=off").flags.activation_fusion);
  EXPECT_THAT(refusal([] { read_layout("recompute_modules=moe"); }), HasSubstr("moe_act"));
  EXPECT_THAT(refusal([] { read_layout("fp8=half"); }), HasSubstr("half"));
}

TEST(Layout, ImpossibleOnesNameTheRule) {
  const auto refused = [](const char* text) {
    return refusal([&] {
      Layout l = read_layout(text);
      check(l, gpt());
    });
  };
  EXPECT_THAT(refused("tp=3"), HasSubstr("attention heads 16 is not divisible by tp 3"));
  EXPECT_THAT(refused("sp=on"), HasSubstr("sp=on needs tp"));
  EXPECT_THAT(refused("ep=2,dp=2"), HasSubstr("no experts"));
  EXPECT_THAT(refused("pp=16"), HasSubstr("8 layers"));
  EXPECT_THAT(refused("pp=2,vp=6"), HasSubstr("8 layers"));
  EXPECT_THAT(refused("pp=4,vp=2,gbs=6"), HasSubstr("micro-batches 6"));
  EXPECT_THAT(refused("dp=4,gbs=6"), HasSubstr("global-batch 6"));
  EXPECT_THAT(refused("cp=3"), HasSubstr("sequence 2048"));
  EXPECT_THAT(refused("zero=4"), HasSubstr("zero is 4"));
  EXPECT_EQ(refused("dp=4,tp=4,pp=4,gbs=8"), "");
}

TEST(Layout, DeepSpeedConfig) {
  Layout l;
  layout_from_deepspeed(
      l,
      json::parse(
          R"({"train_batch_size": 256, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 8, "fp16": {"enabled": true},
    "zero_optimization": {"stage": 2, "reduce_bucket_size": 1e9, "allgather_bucket_size": 2e8, "overlap_comm": true}, "gradient_clipping": 0.0})"),
      "ds.json");
  EXPECT_EQ(l.dp, 8);
  EXPECT_EQ(l.zero, 2);
  EXPECT_EQ(l.dtype, DType::f16);
  EXPECT_EQ(l.flags.reduce_bucket_elements, 1'000'000'000);
  EXPECT_EQ(l.flags.overlap_comm, true);
  EXPECT_FALSE(l.flags.gradient_clipping);
  EXPECT_THAT(refusal([] {
                Layout x;
                layout_from_deepspeed(x, json{{"zero_optimization", {{"stage", "many"}}}}, "ds.json");
              }),
              HasSubstr("ds.json"));
  EXPECT_THAT(
      refusal([] {
        Layout x;
        layout_from_deepspeed(
            x, json{{"train_batch_size", 7}, {"train_micro_batch_size_per_gpu", 2}, {"gradient_accumulation_steps", 1}},
            "ds.json");
      }),
      HasSubstr("train_batch_size 7"));
}

TEST(Layout, NeoxAndMegatron) {
  Layout n;
  layout_from_neox(n,
                   "pipe-parallel-size: 2\nmodel-parallel-size: 4\ntrain_micro_batch_size_per_gpu: "
                   "8\nprecision: bfloat16\nzero_optimization:\n  stage: 1\n  reduce_bucket_size: "
                   "500000000\ncheckpoint-activations: true\n",
                   "n.yml");
  EXPECT_EQ(n.pp, 2);
  EXPECT_EQ(n.tp, 4);
  EXPECT_EQ(n.zero, 1);
  EXPECT_EQ(n.micro_batch, 8);
  EXPECT_EQ(n.recompute, Recompute::full);
  Layout m;
  layout_from_megatron(
      m,
      parse_arguments(
          "--tensor-model-parallel-size 8 --pipeline-model-parallel-size 4 --num-layers 96 "
          "--num-layers-per-virtual-pipeline-stage 6 --sequence-parallel --bf16 --use-distributed-optimizer "
          "--micro-batch-size 1 --global-batch-size 128 --recompute-granularity selective --world-size 64"),
      "m.sh");
  EXPECT_EQ(m.virtual_stages, 4);
  EXPECT_TRUE(m.sp);
  EXPECT_EQ(m.zero, 1);
  derive_dp(m);
  EXPECT_EQ(m.dp, 2);
  EXPECT_EQ(m.recompute, Recompute::selective);
}

// Configs with bytes flipped, cut and doubled: rejected with a place, or read; never a crash.
TEST(Hostile, MutatedConfigs) {
  const std::string hf =
      R"({"model_type": "deepseek_v3", "hidden_size": 7168, "intermediate_size": 18432, "num_hidden_layers": 61, "num_attention_heads": 128, "vocab_size": 129280,
    "max_position_embeddings": 4096, "moe_intermediate_size": 2048, "n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 8, "first_k_dense_replace": 3, "kv_lora_rank": 512,
    "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "mlp_only_layers": [1, 2]})";
  const std::string yml =
      "num-layers: 32\nhidden-size: 2560\nnum-attention-heads: 32\nseq-length: 2048\nzero_optimization: "
      "{stage: 1}\n";
  std::mt19937 random(7);
  int refused = 0, accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text = i % 2 ? hf : yml;
    for (auto n = random() % 6 + 1; n > 0; --n) {
      const std::size_t at = random() % text.size();
      switch (random() % 4) {
        case 0: text[at] = static_cast<char>(random()); break;
        case 1: text.erase(at, random() % 20 + 1); break;
        case 2: text.insert(at, text.substr(random() % text.size(), random() % 12)); break;
        default: text.insert(at, std::string(random() % 4 + 1, "0123456789e-.[{"[random() % 15]));
      }
      if (text.empty()) text = " ";
    }
    const std::string sentence = refusal([&] {
      Model m = i % 2 ? model_from_huggingface(parse_json(text, "x.json"), "x.json") : model_from_neox(text, "x.yml");
      Layout l = read_layout("dp=2,tp=2,pp=2,gbs=4");
      if (i % 2 == 0) layout_from_neox(l, text, "x.yml");
      l.micro_batch = 1;
      l.global_batch = 0;
      check(l, m);
      if (m.layers < 10000) rows_of(make_schedule(m, l, Framework::textbook, 0));
    });
    (sentence.empty() ? accepted : refused) += 1;
    ASSERT_EQ(sentence.find("wrong kind"), std::string::npos) << sentence;
  }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(accepted, 100);
}

}  // namespace medley::plan
