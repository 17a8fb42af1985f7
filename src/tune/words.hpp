// Operations, types, memory and sizes as users write them: `all_reduce,send`, `bf16`, `cuda`, `64K`, `4:64M`. Used by
// the commands that measure and by their Python functions.
#pragma once

#include <cstddef>
#include <medley/medley.hpp>
#include <string>
#include <utility>
#include <vector>

namespace medley::tune {

// All throw Error(invalid) that names the offending word.

/// `all`, or names separated by commas. recv is measured together with send and is not part of all.
std::vector<Op> ops_of(const std::string& text);
Op op_of_word(const std::string& word);
DType dtype_of_word(const std::string& word);
/// Also throws where this machine has no such memory, so that a command reports it once before any rank starts.
Memory memory_of_word(const std::string& word);

std::size_t parse_size(const std::string& text);
/// `A:B`, or one size for both.
std::pair<std::size_t, std::size_t> parse_size_range(const std::string& text);

}  // namespace medley::tune
