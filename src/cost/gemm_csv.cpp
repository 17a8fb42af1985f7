#include "cost/gemm_csv.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <fstream>
#include <medley/error.hpp>
#include <optional>

namespace medley::cost {
namespace {

std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (char c : line) {
    if (c == '"') quoted = !quoted;
    else if (c == ',' && !quoted) cells.emplace_back();
    else if (c != '\r') cells.back() += c;
  }
  for (std::string& cell : cells) {
    cell.erase(0, std::min(cell.find_first_not_of(" \t"), cell.size()));
    cell.erase(cell.find_last_not_of(" \t") + 1);
  }
  return cells;
}

class Reader {
 public:
  Reader(std::string path, std::vector<std::string> header) : path_(std::move(path)), header_(std::move(header)) {
    for (std::string& title : header_)
      std::ranges::transform(title, title.begin(), [](unsigned char c) { return char(std::tolower(c)); });
    for (const char* needed : {"m", "n", "k"})
      if (column(needed) < 0)
        throw Error(ErrorKind::invalid, fmt::format("{}: no column '{}'; the first line must name m, n, k and may name "
                                                    "batch, layout, type",
                                                    path_, needed));
  }

  Gemm read(const std::vector<std::string>& cells, int line) const {
    Gemm gemm{.m = number(cells, "m", line), .n = number(cells, "n", line), .k = number(cells, "k", line)};
    try {
      if (text(cells, "batch") != "") gemm.batch = number(cells, "batch", line);
      if (text(cells, "layout") != "") gemm.layout = parse_gemm_layout(text(cells, "layout"));
      const std::string type = text(cells, "type") != "" ? text(cells, "type") : text(cells, "dtype");
      if (type != "") gemm.type = parse_gemm_type(type);
      gemm.name = text(cells, "name");
      check(gemm);
    } catch (const Error& error) {
      throw Error(ErrorKind::invalid, fmt::format("{} line {}: {}", path_, line, error.what()));
    }
    return gemm;
  }

 private:
  int column(std::string_view title) const {
    const auto found = std::ranges::find(header_, title);
    return found == header_.end() ? -1 : int(found - header_.begin());
  }
  std::string text(const std::vector<std::string>& cells, std::string_view title) const {
    const int i = column(title);
    return i < 0 || i >= int(cells.size()) ? "" : cells[std::size_t(i)];
  }
  std::int64_t number(const std::vector<std::string>& cells, std::string_view title, int line) const {
    const std::string cell = text(cells, title);
    std::int64_t value = 0;
    const auto [end, status] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    if (status != std::errc() || end != cell.data() + cell.size())
      throw Error(ErrorKind::invalid,
                  fmt::format("{} line {}: {} = '{}' is not a whole number of 64 bits", path_, line, title, cell));
    return value;
  }

  std::string path_;
  std::vector<std::string> header_;
};

}  // namespace

std::vector<Gemm> read_gemm_csv(std::istream& in, const std::string& path) {
  std::optional<Reader> reader;
  std::vector<Gemm> gemms;
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos || line[0] == '#') continue;
    if (!reader) reader.emplace(path, split(line));
    else gemms.push_back(reader->read(split(line), number));
  }
  if (!reader) throw Error(ErrorKind::invalid, fmt::format("{}: empty file, a header m,n,k is needed", path));
  return gemms;
}

std::vector<Gemm> read_gemm_csv(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw Error(ErrorKind::invalid, fmt::format("cannot read {}: check that it exists", path));
  return read_gemm_csv(file, path);
}

Gemm called_for_rows(const Gemm& gemm) {
  Gemm called = gemm;
  std::swap(called.m, called.n);
  return called;
}

}  // namespace medley::cost
