// Real configurations (configs.txt): each loads with the published parameter count, or is rejected with an
// error that names its family and the nearest known one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <medley/error.hpp>
#include <sstream>

#include "model/config_text.hpp"
#include "model/read_model.hpp"

namespace medley::model {
namespace {

using nlohmann::json;
using testing::HasSubstr;

struct Published {
  std::string name, parameters;
  json config;
};

std::vector<Published> published() {
  std::ifstream file(CONFIGS);
  std::vector<Published> out;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    Published model;
    words >> model.name >> model.parameters;
    std::string keys;
    std::getline(words, keys);
    model.config = config_from_text(keys);
    out.push_back(std::move(model));
  }
  return out;
}

json config_of(const std::string& name) {
  for (const Published& model : published())
    if (model.name == name) return model.config;
  ADD_FAILURE() << name << " is not in configs.txt";
  return {};
}

Model model_named(const std::string& name) { return model_from_huggingface(config_of(name), name); }

TEST(Configs, PublishedCountsAreExact) {
  Count loaded = 0, counted = 0;
  for (const Published& model : published()) {
    if (model.parameters == "refused") continue;
    ++loaded;
    try {
      const Count parameters = count_parameters(model_from_huggingface(model.config, model.name)).total;
      if (model.parameters == "-") continue;
      ++counted;
      EXPECT_EQ(parameters, std::stoll(model.parameters)) << model.name;
    } catch (const Error& error) {
      ADD_FAILURE() << error.what();
    }
  }
  EXPECT_GE(loaded, 100);
  EXPECT_GE(counted, 100);
}

TEST(Configs, UnknownFamiliesAreRefusedWithTheNearestNamed) {
  const std::map<std::string, std::string> nearest = {{"DeepSeek-V3.2", "deepseek_v3"}, {"MiniMax-M3", "minimax_m2"},
                                                      {"qwen3-next-80b", "qwen3_moe"},  {"mamba-2.8b", "llama"},
                                                      {"GLM-5", "deepseek_v3"},         {"jamba-v0.1", "qwen3_moe"}};
  Count refused = 0;
  for (const Published& model : published()) {
    if (model.parameters != "refused") continue;
    ++refused;
    try {
      model_from_huggingface(model.config, model.name);
      ADD_FAILURE() << model.name << " was not refused";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::invalid);
      EXPECT_THAT(error.what(), HasSubstr(model.name + ": model_type '"));
      EXPECT_THAT(error.what(), HasSubstr("the nearest known family is "));
      if (nearest.contains(model.name)) {
        EXPECT_THAT(error.what(), HasSubstr("nearest known family is " + nearest.at(model.name) + ":"));
      }
    }
  }
  EXPECT_GE(refused, 20);
}

TEST(Configs, AsReadsAConfigByAnotherFamily) {
  json config = config_of("DeepSeek-V3");
  const Count parameters = count_parameters(model_from_huggingface(config, "x")).total;
  config["model_type"] = "deepseek_v32";
  EXPECT_THROW(model_from_huggingface(config, "x"), Error);
  const Model tried = model_from_huggingface(config, "x", "deepseek_v3");
  EXPECT_EQ(count_parameters(tried).total, parameters);
  EXPECT_EQ(tried.family, "deepseek_v3");
  EXPECT_THROW(model_from_huggingface(config, "x", "deepseek_v33"), Error);
  EXPECT_THROW(read_model("llama-2-7b", "qwen2"), Error);
}

TEST(Configs, PatternsOfAttention) {
  const Model gemma = model_named("gemma-3-27b-text");  // five with the window, then a full one
  EXPECT_EQ(gemma.window, 1024);
  EXPECT_EQ(gemma.span(4), Span::window);
  EXPECT_EQ(gemma.span(5), Span::full);
  EXPECT_EQ(model_named("gemma2_9b").span(0), Span::window);
  EXPECT_EQ(model_named("gemma2_9b").span(1), Span::full);
  EXPECT_EQ(model_named("gpt-oss-20b").span(0), Span::window);
  EXPECT_EQ(model_named("gpt-oss-20b").window, 128);
  EXPECT_EQ(model_named("Mistral-7B-v0.1").span(17), Span::window);
  EXPECT_EQ(model_named("Mistral-Nemo-12B").span(17), Span::full);
  EXPECT_EQ(model_named("Qwen2.5-72B").span(79), Span::full) << "use_sliding_window is false";
  json windowed = config_of("Qwen2.5-72B");
  windowed["use_sliding_window"] = true;
  windowed["max_window_layers"] = 70;
  EXPECT_EQ(model_from_huggingface(windowed, "x").span(69), Span::full);
  EXPECT_EQ(model_from_huggingface(windowed, "x").span(70), Span::window);
  EXPECT_TRUE(model_named("Llama-4-Scout-17B-16E-Instruct").chunked);
  EXPECT_EQ(model_named("MiniMax-Text-01").span(6), Span::linear);
  EXPECT_EQ(model_named("MiniMax-Text-01").span(7), Span::full);
  json wrong = config_of("gpt-oss-20b");
  wrong["layer_types"] = json::array({"full_attention"});
  EXPECT_THROW(model_from_huggingface(wrong, "x"), Error);
  wrong = config_of("gpt-oss-20b");
  wrong["layer_types"][3] = "mamba";
  EXPECT_THROW(model_from_huggingface(wrong, "x"), Error);
}

TEST(Configs, SharesOfTheSquare) {
  Model m = model_named("Mistral-7B-v0.1");
  m.window = 4;
  EXPECT_EQ(m.pairs_share(Span::full, 8), 1);
  EXPECT_EQ(m.pairs_share(Span::window, 4), 1);
  EXPECT_DOUBLE_EQ(m.pairs_share(Span::window, 8), (1 + 2 + 3 + 4 * 5) / 36.0);
  m.chunked = true;
  EXPECT_DOUBLE_EQ(m.pairs_share(Span::window, 8), 20 / 36.0);
  EXPECT_DOUBLE_EQ(m.pairs_share(Span::window, 10), 23 / 55.0);
  EXPECT_EQ(m.keys_kept(Span::window, 100), 4);
  EXPECT_EQ(m.keys_kept(Span::full, 100), 100);
}

}  // namespace
}  // namespace medley::model
