#include "trace/import_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <medley/error.hpp>

namespace medley::trace {
namespace {

/// Lower case, letters only.
std::string bare(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c >= 'A' && c <= 'Z') out += static_cast<char>(c - 'A' + 'a');
    if (c >= 'a' && c <= 'z') out += c;
  }
  return out;
}

struct Spelling {
  std::string_view part;
  Op op;
};
// Longer names first: "reducescatter" contains "scatter" and "reduce".
constexpr std::array<Spelling, 14> spellings = {{{"reducescatter", Op::reduce_scatter},
                                                 {"allreduce", Op::all_reduce},
                                                 {"allgather", Op::all_gather},
                                                 {"alltoall", Op::all_to_all},
                                                 {"broadcast", Op::broadcast},
                                                 {"barrier", Op::barrier},
                                                 {"gather", Op::gather},
                                                 {"scatter", Op::scatter},
                                                 {"reduce", Op::reduce},
                                                 {"isend", Op::send},
                                                 {"send", Op::send},
                                                 {"irecv", Op::recv},
                                                 {"recv", Op::recv},
                                                 {"bcast", Op::broadcast}}};

struct TypeName {
  std::string_view name;
  DType dtype;
};
constexpr std::array<TypeName, 28> type_names = {
    {{"float", DType::f32},       {"float32", DType::f32},   {"double", DType::f64},      {"float64", DType::f64},
     {"half", DType::f16},        {"float16", DType::f16},   {"bfloat16", DType::bf16},   {"bf16", DType::bf16},
     {"long", DType::i64},        {"int64", DType::i64},     {"int", DType::i32},         {"int32", DType::i32},
     {"short", DType::i16},       {"int16", DType::i16},     {"char", DType::i8},         {"int8", DType::i8},
     {"byte", DType::u8},         {"uint8", DType::u8},      {"bool", DType::boolean},    {"longint", DType::i64},
     {"float8e4m3fn", DType::u8}, {"float8e5m2", DType::u8}, {"f32", DType::f32},         {"f16", DType::f16},
     {"f64", DType::f64},         {"signedchar", DType::i8}, {"unsignedchar", DType::u8}, {"long int", DType::i64}}};

}  // namespace

void refuse_import(const std::string& place, const std::string& sentence) {
  throw Error(ErrorKind::invalid, fmt::format("{}: {}", place, sentence));
}

nlohmann::json parse_import(std::string_view text, const std::string& place, std::string_view without) {
  using Parse = nlohmann::json::parse_event_t;
  try {
    if (without.empty()) return nlohmann::json::parse(text);
    return nlohmann::json::parse(
        text, [&](int, Parse event, const nlohmann::json& value) { return event != Parse::key || value != without; });
  } catch (const nlohmann::json::parse_error& error) {
    refuse_import(place, fmt::format("is not JSON from byte {} on", error.byte));
  } catch (const nlohmann::json::out_of_range&) {
    refuse_import(place, "holds a number that is too large");
  }
}

std::optional<Op> foreign_op(std::string_view name) {
  const std::string text = bare(name);
  for (const auto& [part, op] : spellings) {
    if (text.find(part) == std::string::npos) continue;
    if (op == Op::all_to_all && text.find("alltoallv") != std::string::npos) return Op::all_to_allv;
    return op;
  }
  return std::nullopt;
}

Op told_by_sides(Op op, std::int64_t in, std::int64_t out) {
  return op == Op::all_to_all && in > 0 && out > 0 && in != out ? Op::all_to_allv : op;
}

std::optional<DType> foreign_dtype(std::string_view name) {
  std::string text;
  const std::size_t after = name.find_last_of(".:");
  for (const char c : after == std::string_view::npos ? name : name.substr(after + 1)) {
    if (c >= 'A' && c <= 'Z') text += static_cast<char>(c - 'A' + 'a');
    else if (c != '_') text += c;
  }
  for (const auto& [known, dtype] : type_names) {
    if (text == known) return dtype;
  }
  return std::nullopt;
}

std::vector<int> rank_list(const nlohmann::json& value, std::int64_t size) {
  std::vector<int> ranks;
  if (value.is_array()) {
    for (const auto& item : value) {
      if (!item.is_number_integer() || item.get<std::int64_t>() < 0 || item.get<std::int64_t>() >= most_ranks)
        return {};
      ranks.push_back(item.get<int>());
    }
  } else if (value.is_string()) {
    const std::string text = value.get<std::string>();
    std::int64_t number = -1;
    for (const char c : text) {
      if (c >= '0' && c <= '9') {
        number = std::max<std::int64_t>(number, 0) * 10 + (c - '0');
        if (number >= most_ranks) return {};
      } else if (number >= 0) {
        ranks.push_back(static_cast<int>(number));
        number = -1;
      }
    }
    if (number >= 0) ranks.push_back(static_cast<int>(number));
    // Kineto cuts long lists; groups are regular, so the first two ranks give the rest.
    const bool cut = text.find("...") != std::string::npos;
    if (cut && (ranks.size() < 2 || size > most_ranks)) return {};
    while (cut && static_cast<std::int64_t>(ranks.size()) < size) ranks.push_back(ranks.back() + ranks[1] - ranks[0]);
    if (!ranks.empty() && *std::min_element(ranks.begin(), ranks.end()) < 0) return {};
  }
  return ranks;
}

std::string shown(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::int64_t checked_bytes(std::int64_t elements, DType dtype, const std::string& place) {
  if (elements < 0 || elements > (std::int64_t{1} << 52)) {
    refuse_import(place, fmt::format("a tensor cannot have {} elements", elements));
  }
  return elements * static_cast<std::int64_t>(size_of(dtype));
}

std::int64_t number_in(const nlohmann::json& object, const char* key, std::int64_t otherwise) {
  const auto found = object.find(key);
  if (found == object.end()) return otherwise;
  if (found->is_number_integer()) return found->get<std::int64_t>();
  if (found->is_number_float() && std::abs(found->get<double>()) < 9e18)
    return static_cast<std::int64_t>(found->get<double>());
  if (found->is_string()) {  // some versions write numbers as text
    const std::string text = found->get<std::string>();
    const bool digits = !text.empty() && text.size() < 19 && text.find_first_not_of("0123456789") == std::string::npos;
    return digits ? std::stoll(text) : otherwise;
  }
  return otherwise;
}

std::string text_in(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) return {};
  return found->is_string() ? found->get<std::string>() : found->is_number_integer() ? found->dump() : std::string{};
}

bool flag_in(const nlohmann::json& object, const char* key, bool otherwise) {
  const auto found = object.find(key);
  if (found == object.end()) return otherwise;
  if (found->is_boolean()) return found->get<bool>();
  return found->is_number_integer() ? found->get<std::int64_t>() != 0 : otherwise;
}

double real_in(const nlohmann::json& object, const char* key, double otherwise) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return otherwise;
  const double value = found->get<double>();
  return value >= 0 && value < 1e19 ? value : otherwise;
}

}  // namespace medley::trace
