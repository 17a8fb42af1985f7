// How tables show an operation that the library lacks, for which JSON has "filled".
#pragma once

namespace medley::cli {

inline constexpr const char* via_messages = "via messages";
inline constexpr const char* via_messages_legend =
    "via messages: the library lacks the operation, so Medley runs it over the library's sends and receives\n";

}  // namespace medley::cli
