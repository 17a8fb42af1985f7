#include "cli/validators.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <medley/error.hpp>
#include <optional>

#include "base/closest.hpp"
#include "base/split.hpp"
#include "cli/command.hpp"
#include "comm/backend_loader.hpp"

namespace medley::cli {
namespace {

bool is_known(const std::string& backend) {
  if (backend == "auto") return true;
  // A pair such as shm+mpi, or a split such as shm|ucx
  const auto parts = split(backend, backend.find('|') == std::string::npos ? '+' : '|');
  return !parts.empty() && parts.size() <= 2 && std::all_of(parts.begin(), parts.end(), [](const std::string& part) {
    return core::find_backend(part) != nullptr;
  });
}

/// Neither text nor infinity nor NaN, which compares false with every limit.
std::optional<double> finite_number(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || *end != '\0' || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::string written(double limit) {
  return limit == std::floor(limit) ? fmt::format("{:.0f}", limit) : fmt::format("{}", limit);
}

}  // namespace

CLI::Validator between(double low, double high) {
  return CLI::Validator(
      [=](const std::string& text) {
        const auto value = finite_number(text);
        if (value && *value >= low && *value <= high) return std::string();
        return fmt::format("\"{}\" is not a number from {} to {}", text, written(low), written(high));
      },
      "");
}

CLI::Validator whole(std::int64_t low, std::int64_t high) {
  return CLI::Validator(
      [=](const std::string& text) {
        std::int64_t value = 0;
        const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
        const bool read = problem == std::errc() && end == text.data() + text.size();
        if (read && value >= low && value <= high) return std::string();
        return fmt::format("\"{}\" is not a whole number from {} to {}", text, low, high);
      },
      "");
}

CLI::Validator positive() {
  return CLI::Validator(
      [](const std::string& text) {
        const auto value = finite_number(text);
        return value && *value > 0 ? std::string() : fmt::format("\"{}\" is not a number above 0", text);
      },
      "");
}

void refuse_beside(const CLI::App& command, const std::string& with, std::initializer_list<const char*> options) {
  for (const char* option : options) {
    if (command.get_option(option)->count() > 0)
      throw Error(ErrorKind::invalid, fmt::format("{} has no effect with {}; leave one of them out", option, with));
  }
}

CLI::Option* names_file(CLI::Option* option, const std::string& type) {
  const auto check = [](const std::string& text) { return text.empty() ? "the name is empty" : std::string(); };
  return option->check(CLI::Validator(check, ""))->type_name(type);
}

CLI::Option* one_of(CLI::Option* option, const std::vector<std::string>& words) {
  return option->check(CLI::IsMember(words).description(""))->type_name(fmt::format("{{{}}}", fmt::join(words, ",")));
}

CLI::Validator known_backends() {
  return CLI::Validator(
      [](const std::string& text) {
        const bool parse_only = std::getenv("MEDLEY_PARSE_ONLY");  // documents name plugins that are not here
        for (const std::string& backend : split(text, ',')) {
          if (parse_only || is_known(backend)) continue;
          std::vector<std::string> names;
          for (const auto& known : core::known_backends()) names.push_back(known->name());
          return fmt::format("\"{}\" is not a backend{}; there are {}", backend, did_you_mean(backend, names),
                             fmt::join(names, ", "));
        }
        return std::string();
      },
      "");
}

}  // namespace medley::cli
