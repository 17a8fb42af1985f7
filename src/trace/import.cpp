#include "trace/import.hpp"

#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <medley/error.hpp>

namespace medley::trace {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t most_bytes = std::uintmax_t{4}
                                      << 30;  // a Chrome trace of hours; more would not fit in memory

enum class Format { none, pickle, kineto, flight_json, deepspeed };

Format format_of(std::string_view head) {
  if (head.size() >= 2 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5) return Format::pickle;
  const auto has = [&](std::string_view word) { return head.find(word) != std::string_view::npos; };
  const std::size_t first = head.find_first_not_of(" \t\r\n");
  const bool json = first != std::string_view::npos && (head[first] == '{' || head[first] == '[');
  if (json && (has("\"traceEvents\"") || has("\"ph\"") || has("\"schemaVersion\""))) return Format::kineto;
  if (json && (has("\"entries\"") || has("\"pg_config\"") || has("\"pg_status\"")))
    return Format::flight_json;
  if (has("Comm. Op")) return Format::deepspeed;
  return json ? Format::flight_json : Format::none;
}

std::string read(const fs::path& path, std::size_t most) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error(ErrorKind::invalid, fmt::format("{}: cannot be opened", path.native()));
  std::string text(most, '\0');
  file.read(text.data(), static_cast<std::streamsize>(most));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

}  // namespace

bool looks_importable(const fs::path& path) {
  const Format format = format_of(read(path, 1 << 16));
  return format != Format::none;
}

void import_file(const fs::path& path, Trace& trace) {
  std::error_code error;
  const std::uintmax_t bytes = fs::file_size(path, error);
  if (error || bytes > most_bytes) {
    throw Error(ErrorKind::invalid,
                fmt::format("{}: {}", path.native(), error ? "cannot be read" : "is larger than 4 GiB"));
  }
  const std::string text = read(path, static_cast<std::size_t>(bytes));
  Format format = format_of(std::string_view(text).substr(0, 1 << 16));
  if (format == Format::none && text.find("Comm. Op") != std::string::npos) format = Format::deepspeed;
  switch (format) {
    case Format::pickle:
      return import_flight_pickle(text, path.native(), trace);
    case Format::kineto:
      return import_kineto(text, path.native(), trace);
    case Format::flight_json:
      return import_flight_json(text, path.native(), trace);
    case Format::deepspeed:
      return import_deepspeed(text, path.native(), trace);
    case Format::none:
      break;
  }
  throw Error(ErrorKind::invalid, fmt::format("{}: is neither a record file of Medley, a table of "
                                              "DeepSpeed's comms logger (\"Comm. Op\"), a dump of "
                                              "PyTorch's flight recorder nor a Chrome trace",
                                              path.native()));
}

}  // namespace medley::trace
