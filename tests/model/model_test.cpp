// Parameter counts, exactly as the frameworks count.
#include "model/model.hpp"

#include <gtest/gtest.h>

#include <medley/error.hpp>

#include "model/zoo.hpp"

namespace medley::model {

struct Published {
  const char* name;
  Count parameters;
};

// model.num_parameters() of transformers, and the counts on the models' cards.
TEST(Model, CountsAreThoseOfTheFrameworks) {
  for (const auto& [name, parameters] : {Published{"gpt2", 124'439'808},
                                         {"gpt2-medium", 354'823'168},
                                         {"gpt2-large", 774'030'080},
                                         {"gpt2-xl", 1'557'611'200},
                                         {"gpt-j-6b", 6'050'882'784},
                                         {"gpt-neox-20b", 20'554'567'680},
                                         {"pythia-70m", 70'426'624},
                                         {"pythia-160m", 162'322'944},
                                         {"pythia-410m", 405'334'016},
                                         {"pythia-1b", 1'011'781'632},
                                         {"pythia-1.4b", 1'414'647'808},
                                         {"pythia-2.8b", 2'775'208'960},
                                         {"pythia-6.9b", 6'857'302'016},
                                         {"pythia-12b", 11'846'072'320},
                                         {"opt-125m", 125'239'296},
                                         {"opt-1.3b", 1'315'758'080},
                                         {"opt-6.7b", 6'658'473'984},
                                         {"bloom-1b1", 1'065'314'304},
                                         {"bloom-7b1", 7'069'016'064},
                                         {"bloom-176b", 176'247'271'424},
                                         {"llama-7b", 6'738'415'616},
                                         {"llama-2-7b", 6'738'415'616},
                                         {"llama-2-13b", 13'015'864'320},
                                         {"llama-2-70b", 68'976'648'192},
                                         {"llama-3-8b", 8'030'261'248},
                                         {"llama-3-70b", 70'553'706'496},
                                         {"llama-3.1-405b", 405'853'388'800},
                                         {"llama-3.2-1b", 1'235'814'400},
                                         {"llama-3.2-3b", 3'212'749'824},
                                         {"mistral-7b", 7'241'732'096},
                                         {"mixtral-8x7b", 46'702'792'704},
                                         {"mixtral-8x22b", 140'630'071'296},
                                         {"falcon-7b", 6'921'720'704},
                                         {"phi-2", 2'779'683'840},
                                         {"phi-3-mini", 3'821'079'552},
                                         {"phi-4", 14'659'507'200},
                                         {"qwen2.5-0.5b", 494'032'768},
                                         {"qwen2.5-7b", 7'615'616'512},
                                         {"qwen2.5-72b", 72'706'203'648},
                                         {"qwen3-4b", 4'022'468'096},
                                         {"qwen3-32b", 32'762'123'264},
                                         {"qwen3-30b-a3b", 30'532'122'624},
                                         {"qwen3-235b-a22b", 235'093'634'560},
                                         {"gpt-oss-120b", 116'829'156'672},
                                         {"deepseek-v3", 671'026'404'352},
                                         {"gemma-2-27b", 27'227'128'320},
                                         {"minimax-text-01", 456'089'655'296}}) {
    const auto model = model_from_zoo(name);
    ASSERT_TRUE(model) << name;
    EXPECT_EQ(count_parameters(*model).total, parameters) << name;
  }
}

TEST(Model, ActiveParametersOfMixtures) {
  EXPECT_EQ(count_parameters(*model_from_zoo("mixtral-8x7b")).active, 12'879'925'248);
  EXPECT_NEAR(static_cast<double>(count_parameters(*model_from_zoo("qwen3-30b-a3b")).active), 3.35e9, 0.05e9);
}

TEST(Model, EveryModelOfTheZooIsSound) {
  EXPECT_EQ(zoo().size(), 107u);
  for (const Model& m : zoo()) EXPECT_NO_THROW(check(m, m.name)) << m.name;
}

TEST(Model, NamesMatchInAnyCase) { EXPECT_TRUE(model_from_zoo("LLaMA_2-7B")); }

TEST(Model, OverflowIsRefused) {
  Model m = *model_from_zoo("gpt3-175b");
  m.layers = m.heads = m.kv_heads = 1 << 20;
  m.hidden = m.ffn = 1 << 24;
  EXPECT_THROW(check(m, "test"), Error);
}

}  // namespace medley::model
