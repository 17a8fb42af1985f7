// Shared by the importers: other tools' names of operations and element types, lists of ranks, checked sizes.
#pragma once

#include <cstdint>
#include <medley/types.hpp>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace medley::trace {

inline constexpr std::int64_t most_ranks = 1 << 20;  ///< no job is larger; a larger number means a damaged file

[[noreturn]] void refuse_import(const std::string& place, const std::string& sentence);

/// The file as JSON, without the values of the key `without`; rejected with the byte of the first error.
nlohmann::json parse_import(std::string_view text, const std::string& place, std::string_view without = {});

/// "nccl:_all_gather_base", "allgather_into_tensor_coalesced", "ncclAllReduce": the operation, if it moves
/// data.
std::optional<Op> foreign_op(std::string_view name);
/// An all_to_all whose input and output counts differ is an all_to_allv, whatever its name.
Op told_by_sides(Op op, std::int64_t in, std::int64_t out);
/// "Float", "BFloat16", "torch.int64", "c10::Half".
std::optional<DType> foreign_dtype(std::string_view name);
/// [0, 1, 2], or the text "[0, 1, 2]"; "[0, 2, 4, ...]" continues evenly up to `size` ranks. Empty when it is
/// neither.
std::vector<int> rank_list(const nlohmann::json& value, std::int64_t size);

/// A value for an error message. Pickles can hold text that is not UTF-8, which dump() alone rejects.
std::string shown(const nlohmann::json& value);
/// Elements times their size; rejects sizes that no machine holds.
std::int64_t checked_bytes(std::int64_t elements, DType dtype, const std::string& place);
/// A number in the object, or `otherwise` when absent or of another type.
std::int64_t number_in(const nlohmann::json& object, const char* key, std::int64_t otherwise);
std::string text_in(const nlohmann::json& object, const char* key);
/// True for true and for nonzero numbers, as pickles of some versions write them; `otherwise` when absent or
/// of another type.
bool flag_in(const nlohmann::json& object, const char* key, bool otherwise);
/// 2.5e9 and 2500000000 alike; `otherwise` for negative and absurd values.
double real_in(const nlohmann::json& object, const char* key, double otherwise);

}  // namespace medley::trace
