#include "model/text.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <medley/error.hpp>
#include <sstream>

namespace medley::model {

void refuse_at(std::string_view place, const std::string& sentence) {
  throw Error(ErrorKind::invalid, fmt::format("{}: {}", place, sentence));
}

namespace {

std::string shortened(std::string_view text) {
  return text.size() > 40 ? fmt::format("{}…", text.substr(0, 40)) : std::string(text);
}

}  // namespace

Count parse_count(std::string_view text, std::string_view place, std::string_view key) {
  const std::string value = trimmed(text);
  const char* end = value.data() + value.size();
  Count whole = 0;
  auto [stop, error] = std::from_chars(value.data(), end, whole);
  if (error == std::errc() && stop == end) return whole;
  if (error == std::errc() && stop + 1 == end) {
    const auto unit = std::string_view("KMGT").find(*stop >= 'a' ? static_cast<char>(*stop - 32) : *stop);
    if (unit != std::string_view::npos) return product({whole, Count{1} << (10 * (unit + 1))}, key);
  }
  double real = 0;  // 5e8, as DeepSpeed's documents write sizes
  const auto parsed = std::from_chars(value.data(), end, real);
  if (parsed.ec == std::errc() && parsed.ptr == end && std::abs(real) < 9.2e18 && real == std::floor(real))
    return static_cast<Count>(real);
  refuse_at(place, fmt::format("{} is '{}'; it must be a whole number", key, shortened(value)));
}

double parse_real(std::string_view text, std::string_view place, std::string_view key) {
  const std::string value = trimmed(text);
  double real = 0;
  const auto parsed = std::from_chars(value.data(), value.data() + value.size(), real);
  if (parsed.ec != std::errc() || parsed.ptr != value.data() + value.size() || !std::isfinite(real)) {
    refuse_at(place, fmt::format("{} is '{}'; it must be a number", key, shortened(value)));
  }
  return real;
}

bool parse_switch(std::string_view text, std::string_view place, std::string_view key) {
  const std::string value = plain_key(trimmed(text));
  if (value == "on" || value == "true" || value == "yes" || value == "1") return true;
  if (value == "off" || value == "false" || value == "no" || value == "0") return false;
  refuse_at(place, fmt::format("{} is '{}'; it must be on or off", key, shortened(value)));
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const auto at = text.find(separator);
    parts.push_back(trimmed(text.substr(0, at)));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::string trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n"), last = text.find_last_not_of(" \t\r\n");
  return first == std::string_view::npos ? std::string() : std::string(text.substr(first, last - first + 1));
}

std::string plain_key(std::string_view key) {
  std::string out;
  for (const char c : key) out += c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

bool is_file(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

std::string read_file(const std::string& path) {
  if (!is_file(path)) refuse_at(path, "no such file");
  std::error_code ignored;
  if (std::filesystem::file_size(path, ignored) > (16u << 20))
    refuse_at(path, "is larger than 16 MiB; that is no configuration");
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  if (!file) refuse_at(path, "cannot be read");
  return content.str();
}

Arguments parse_arguments(const std::string& text) {
  Arguments arguments;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (const auto hash = line.find('#'); hash != std::string::npos) line.resize(hash);
    std::istringstream words(line);
    for (std::string word; words >> word;) {
      while (!word.empty() && (word.back() == '"' || word.back() == '\'' || word.back() == '\\' || word.back() == ')'))
        word.pop_back();
      while (!word.empty() && (word.front() == '"' || word.front() == '\'' || word.front() == '(')) word.erase(0, 1);
      if (word.rfind("--", 0) == 0) {
        const auto equals = word.find('=');
        arguments.emplace_back(plain_key(word.substr(2, equals == std::string::npos ? equals : equals - 2)),
                               equals == std::string::npos ? "" : word.substr(equals + 1));
      } else if (!word.empty() && !arguments.empty() && arguments.back().second.empty()) {
        arguments.back().second = word;
      }
    }
  }
  return arguments;
}

}  // namespace medley::model
