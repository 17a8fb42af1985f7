// Models from a name of the zoo, inline text, a Hugging Face config.json, a GPT-NeoX yml or Megatron-LM
// arguments. Every error names the file (or "--model") and the key.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "model/model.hpp"
#include "model/text.hpp"

namespace medley::model {

/// `spec` as --model takes it: zoo name, path, or "h=3072,a=32,layers=30,vocab=51200,seq=2048". `as` is a
/// family to read a config.json with; empty: its own family.
Model read_model(const std::string& spec, const std::string& as = {});

// The readers behind it, by content; `source` begins error messages.
Model model_from_huggingface(const nlohmann::json& config, const std::string& source, const std::string& as = {});
Model model_from_neox(const std::string& yaml, const std::string& source);
Model model_from_megatron(const Arguments& arguments, const std::string& source);
Model model_from_inline(const std::string& text);

/// Parses text as JSON; the error gives the byte.
nlohmann::json parse_json(const std::string& text, const std::string& source);

}  // namespace medley::model
