// Layouts from text such as "dp=8,tp=4,sp=on,zero=1" or from the frameworks' own files, which can be
// combined: "ds_config.json,dp=16". Every error names the key and the rule.
#pragma once

#include <string>

#include "model/layout.hpp"
#include "model/read_model.hpp"

namespace medley::model {

/// `spec` as --layout takes it. dp follows from `world` where the text or a file gives that.
Layout read_layout(const std::string& spec);

/// The same for the sizes of a layout and what is recomputed: dp=8,tp=4,pp=2,sp=on,zero=1. read_layout() reads it back.
std::string layout_text(const Layout& layout);

/// Sets one key; `place` begins error messages. Returns false for an unknown key.
bool set_layout_key(Layout& layout, const std::string& key, const std::string& value, const std::string& place);

// Readers by content.
void layout_from_deepspeed(Layout& layout, const nlohmann::json& config, const std::string& source);
void layout_from_neox(Layout& layout, const std::string& yaml, const std::string& source);
void layout_from_megatron(Layout& layout, const Arguments& arguments, const std::string& source);

}  // namespace medley::model
