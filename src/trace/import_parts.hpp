// What importers share: names of operations and element types as other tools spell them, lists of ranks,
// checked sizes.
#pragma once

#include <cstdint>
#include <medley/types.hpp>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace medley::trace {

inline constexpr std::int64_t most_ranks = 1 << 20;  ///< no job is larger; a number beyond it is damage

[[noreturn]] void refuse_import(const std::string& place, const std::string& sentence);

/// The file as JSON; refused with the byte where it ceases to be.
nlohmann::json parse_import(std::string_view text, const std::string& place);

/// "nccl:_all_gather_base", "allgather_into_tensor_coalesced", "ncclAllReduce": the operation, if it moves
/// data at all.
std::optional<Op> foreign_op(std::string_view name);
/// An all_to_all that gives another number of elements than it takes is one of uneven parts, whatever it is
/// called.
Op told_by_sides(Op op, std::int64_t in, std::int64_t out);
/// "Float", "BFloat16", "torch.int64", "c10::Half".
std::optional<DType> foreign_dtype(std::string_view name);
/// [0, 1, 2], or the text "[0, 1, 2]"; "[0, 2, 4, ...]" goes on evenly up to `size` ranks. Empty when it is
/// neither.
std::vector<int> rank_list(const nlohmann::json& value, std::int64_t size);

/// A value for an error's sentence. Pickles can hold text that is not UTF-8, which dump() alone refuses.
std::string shown(const nlohmann::json& value);
/// Elements times their size; refuses what no machine holds.
std::int64_t checked_bytes(std::int64_t elements, DType dtype, const std::string& place);
/// A number of the object, or `otherwise` when it is absent or of another kind.
std::int64_t number_in(const nlohmann::json& object, const char* key, std::int64_t otherwise);
std::string text_in(const nlohmann::json& object, const char* key);
/// True for true and for numbers other than 0, as pickles of some versions write them; `otherwise` when it is absent or of
/// another kind.
bool flag_in(const nlohmann::json& object, const char* key, bool otherwise);
/// 2.5e9 and 2500000000 alike; negative and absurd values are `otherwise`.
double real_in(const nlohmann::json& object, const char* key, double otherwise);

}  // namespace medley::trace
