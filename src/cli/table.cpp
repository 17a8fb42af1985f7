#include "cli/table.hpp"

#include <algorithm>
#include <cctype>

namespace medley::cli {
namespace {

// Characters, not bytes: UTF-8 continuation bytes take no space on the screen.
std::size_t width(const std::string& cell) {
  return static_cast<std::size_t>(
      std::count_if(cell.begin(), cell.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

// A dash stands for a number that there is not.
bool numeric(const std::string& cell) {
  return cell == "–" ||
         (std::isdigit(static_cast<unsigned char>(cell[0])) || cell[0] == '-' || cell[0] == '+' || cell[0] == '.');
}

}  // namespace

std::string Table::str() const {
  std::vector<std::size_t> widths(header_.size());
  std::vector<bool> right(header_.size(), !rows_.empty());
  for (std::size_t i = 0; i < header_.size(); ++i) widths[i] = width(header_[i]);
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < std::min(row.size(), widths.size()); ++i) {
      widths[i] = std::max(widths[i], width(row[i]));
      if (!row[i].empty() && !numeric(row[i])) right[i] = false;
    }
  }
  std::string text;
  auto line = [&](const std::vector<std::string>& row) {
    std::string out;
    for (std::size_t i = 0; i < widths.size(); ++i) {
      const std::string cell = i < row.size() ? row[i] : "";
      const std::string pad(widths[i] - width(cell), ' ');
      out += (i ? "  " : "") + (right[i] ? pad + cell : cell + pad);
    }
    out.erase(out.find_last_not_of(' ') + 1);
    text += out + "\n";
  };
  line(header_);
  for (const auto& row : rows_) line(row);
  return text;
}

}  // namespace medley::cli
