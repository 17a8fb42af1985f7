// Parses numbers, switches and lists from configuration text, with errors that name the place. Shared by the
// readers of models and layouts.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/checked.hpp"

namespace medley::model {

/// Throws Error(invalid): "place: sentence".
[[noreturn]] void refuse_at(std::string_view place, const std::string& sentence);

/// A whole number such as 4096, 5e8 or 64K (powers of 1024); `key` and `place` name it in errors.
Count parse_count(std::string_view text, std::string_view place, std::string_view key);
double parse_real(std::string_view text, std::string_view place, std::string_view key);
/// on, off, true, false, yes, no, 1, 0.
bool parse_switch(std::string_view text, std::string_view place, std::string_view key);

std::vector<std::string> split(std::string_view text, char separator);
std::string trimmed(std::string_view text);
/// Lower case, with `-` for `_`, so that all spellings of a key are equal.
std::string plain_key(std::string_view key);
/// The file's content; rejects files that are missing, unreadable or larger than 16 MiB.
std::string read_file(const std::string& path);
bool is_file(const std::string& path);

/// `--key value`, `--key=value` and `--switch` from a shell script or an argument file; comments and `\` are
/// skipped. Switches have an empty value.
using Arguments = std::vector<std::pair<std::string, std::string>>;
Arguments parse_arguments(const std::string& text);

}  // namespace medley::model
