#include "cost/training_time.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <medley/error.hpp>

namespace medley::cost {
namespace {

struct Unit {
  char letter;
  double tokens;
};
constexpr std::array<Unit, 4> units{{{'T', 1e12}, {'B', 1e9}, {'M', 1e6}, {'K', 1e3}}};

double factor_of(char letter) {
  for (const Unit& unit : units)
    if (unit.letter == std::toupper(static_cast<unsigned char>(letter))) return unit.tokens;
  return 0;
}

}  // namespace

TrainingTime training_time(const Layout& l, double step_us, double tokens) {
  if (l.mode != Mode::train)
    throw Error(ErrorKind::invalid, "--tokens is about training; the layout only runs forward");
  const double per_step = static_cast<double>(l.global_batch) * static_cast<double>(l.seq);
  TrainingTime time{.tokens = tokens, .steps = std::ceil(tokens / per_step)};
  const double hours = time.steps * step_us / 3.6e9;
  time.days = hours / 24;
  time.gpu_hours = hours * static_cast<double>(l.world());
  return time;
}

double parse_tokens(const std::string& text, const std::string& option) {
  double tokens = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, tokens);
  if (error == std::errc() && end - stop == 1) tokens *= factor_of(*stop);
  if (error != std::errc() || end - stop > 1 || !(tokens >= 1) || !std::isfinite(tokens))
    throw Error(ErrorKind::invalid, fmt::format("{} {}: give a number of tokens such as 300B or 1.5T", option, text));
  return tokens;
}

std::string tokens_text(double tokens) {
  for (const Unit& unit : units)
    if (tokens >= unit.tokens) return fmt::format("{:.4g}{}", tokens / unit.tokens, unit.letter);
  return fmt::format("{:.0f}", tokens);
}

nlohmann::ordered_json to_json(const TrainingTime& time) {
  return {{"tokens", time.tokens}, {"steps", time.steps}, {"days", time.days}, {"gpu_hours", time.gpu_hours}};
}

}  // namespace medley::cost
