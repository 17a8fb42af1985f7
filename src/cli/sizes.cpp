#include "cli/sizes.hpp"

#include "base/split.hpp"

namespace medley::cli {

std::vector<std::string> parse_list(const std::string& text) { return split(text, ','); }

}  // namespace medley::cli
