// What `medley bench --mix` shows: how long each step took over each backend, and what auto gained.
#pragma once

#include <medley/medley.hpp>
#include <string>
#include <vector>

#include "tune/mix.hpp"

namespace medley::cli {

/// On the screen, and as JSON where a file is named ("-": there alone). Backends made of two are compared apart from single libraries.
void report_mixes(const std::vector<tune::MixRow>& rows, const Context& context, const std::string& json);

}  // namespace medley::cli
