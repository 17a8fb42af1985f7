#include "compress/spec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <medley/error.hpp>

#include "compress/error_bound.hpp"

namespace medley::compress {
namespace {

struct Known {
  Kind kind;
  std::string_view name;
  double least, most;  ///< of its parameter; both 0 for codecs without one
  std::string_view parameter{};
};

constexpr std::array known{
    Known{Kind::bf16, "bf16", 0, 0},
    Known{Kind::fp8_e4m3, "fp8_e4m3", 0, 0},
    Known{Kind::fp8_e5m2, "fp8_e5m2", 0, 0},
    Known{Kind::int8, "int8", 0, 0},
    Known{Kind::int4, "int4", 0, 0},
    Known{Kind::lz4, "lz4", 0, 0},
    Known{Kind::zstd, "zstd", 0, 0},
    Known{Kind::zfp_rate, "zfp_rate", 3, 32, "bits per value"},
    Known{Kind::zfp_accuracy, "zfp_accuracy", 1e-30, 1e30, "absolute tolerance"},
    Known{Kind::top_k, "top_k", 1e-4, 1, "fraction of the values to keep"},
};

const Known& entry(Kind kind) {
  return *std::find_if(known.begin(), known.end(), [kind](const Known& one) { return one.kind == kind; });
}

std::string all_names() {
  std::string text;
  for (const Known& one : known) {
    text += fmt::format("{}{}{}", text.empty() ? "" : ", ", one.name, one.parameter.empty() ? "" : ":NUMBER");
  }
  return text;
}

std::string_view name_in(std::string_view text) { return text.substr(0, text.find(':')); }

bool is_codec(std::string_view text) {
  return std::any_of(known.begin(), known.end(), [name = name_in(text)](const Known& one) { return one.name == name; });
}

std::optional<double> number_in(std::string_view text) {
  double value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

}  // namespace

std::string Spec::text() const {
  const Known& one = entry(kind);
  return one.parameter.empty() ? std::string(one.name) : fmt::format("{}:{}", one.name, parameter);
}

Spec parse_spec(std::string_view text) {
  const std::string_view name = name_in(text);
  const auto* const one =
      std::find_if(known.begin(), known.end(), [name](const Known& each) { return each.name == name; });
  if (one == known.end()) {
    throw Error(ErrorKind::invalid, fmt::format("there is no codec \"{}\"; there are {}", text, all_names()));
  }
  const bool has_parameter = name.size() < text.size();
  if (one->parameter.empty()) {
    if (has_parameter) throw Error(ErrorKind::invalid, fmt::format("codec \"{}\": {} takes no parameter", text, name));
    return {one->kind, 0};
  }
  const std::optional<double> value = has_parameter ? number_in(text.substr(name.size() + 1)) : std::nullopt;
  if (!value || *value < one->least || *value > one->most) {
    throw Error(ErrorKind::invalid, fmt::format("codec \"{}\": write {}:NUMBER with the {}, from {} to {}", text, name,
                                                one->parameter, one->least, one->most));
  }
  return {one->kind, *value};
}

std::size_t find_codec(std::string_view route) {
  const std::size_t at = route.rfind(mark);
  if (at == std::string_view::npos || at == 0) return std::string_view::npos;
  return is_codec(route.substr(at + 1)) ? at : std::string_view::npos;
}

Permission Permission::parse(std::string_view text) {
  Permission made;
  constexpr std::string_view error = "error:";
  if (text.starts_with(error)) {
    made.error_ = number_in(text.substr(error.size()));
    if (made.error_ && *made.error_ >= 0 && *made.error_ <= 1) return made;
    throw Error(ErrorKind::invalid, fmt::format("\"{}\": write error:FRACTION with a number from 0 to 1", text));
  }
  for (;;) {
    const std::size_t comma = text.find(',');
    made.listed_.push_back(parse_spec(text.substr(0, comma)));
    if (comma == std::string_view::npos) return made;
    text.remove_prefix(comma + 1);
  }
}

bool Permission::allows(const Spec& spec) const {
  if (std::find(listed_.begin(), listed_.end(), spec) != listed_.end()) return true;
  if (!error_) return false;
  const std::optional<ErrorBound> bound = bound_of(spec, DType::f32);
  return bound && !bound->depends_on_scale && bound->of_maximum() <= *error_;
}

bool allows(const Permission& permission, std::string_view algorithm) {
  try {
    return permission.allows(parse_spec(algorithm.substr(1)));
  } catch (const Error&) {
    return false;
  }
}

std::string Permission::text() const {
  if (error_) return fmt::format("error:{}", *error_);
  std::string text;
  for (const Spec& spec : listed_) text += (text.empty() ? "" : ",") + spec.text();
  return text;
}

}  // namespace medley::compress
