#include "bootstrap/slurm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <medley/error.hpp>
#include <string_view>

namespace medley {
namespace {

// Larger than any machine: a mistyped range must not exhaust memory.
constexpr std::size_t most_nodes = 1'000'000;

[[noreturn]] void malformed(const std::string& list, const std::string& what) {
  throw Error(ErrorKind::invalid, fmt::format("the Slurm node list \"{}\" is malformed: {}", list, what));
}

std::vector<std::string_view> split_at_commas(std::string_view text) {
  std::vector<std::string_view> parts;
  int depth = 0;
  std::size_t start = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i == text.size() || (text[i] == ',' && depth == 0)) {
      parts.push_back(text.substr(start, i - start));
      start = i + 1;
    } else if (text[i] == '[') {
      ++depth;
    } else if (text[i] == ']') {
      --depth;
    }
  }
  return parts;
}

bool is_number(std::string_view text) {
  return !text.empty() && text.size() <= 9 &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c); });
}

// "01-03" gives 01, 02, 03: the width of the first number is kept.
void expand_range(const std::string& list, std::string_view range, std::vector<std::string>& into) {
  const std::size_t dash = range.find('-');
  const std::string_view first = range.substr(0, dash);
  const std::string_view last = dash == range.npos ? first : range.substr(dash + 1);
  if (!is_number(first) || !is_number(last)) malformed(list, fmt::format("\"{}\" is no range of numbers", range));
  const int from = std::stoi(std::string(first)), to = std::stoi(std::string(last));
  if (to < from) malformed(list, fmt::format("\"{}\" runs backwards", range));
  if (static_cast<std::size_t>(to - from) >= most_nodes) malformed(list, "it names more than a million nodes");
  for (int i = from; i <= to; ++i) into.push_back(fmt::format("{:0{}}", i, first.size()));
}

void expand_name(const std::string& list, std::string_view name, std::vector<std::string>& into) {
  std::vector<std::string> names = {""};
  while (!name.empty()) {
    const std::size_t open = name.find('[');
    for (auto& so_far : names) so_far += name.substr(0, open);
    if (open == name.npos) break;
    const std::size_t close = name.find(']', open);
    if (close == name.npos) malformed(list, "a bracket is not closed");
    std::vector<std::string> numbers;
    for (auto range : split_at_commas(name.substr(open + 1, close - open - 1))) expand_range(list, range, numbers);
    if (names.size() * numbers.size() > most_nodes) malformed(list, "it names more than a million nodes");
    std::vector<std::string> longer;
    for (const auto& so_far : names) {
      for (const auto& number : numbers) longer.push_back(so_far + number);
    }
    names = std::move(longer);
    name.remove_prefix(close + 1);
  }
  into.insert(into.end(), names.begin(), names.end());
}

}  // namespace

std::vector<std::string> expand_node_list(const std::string& list) {
  std::vector<std::string> nodes;
  for (auto name : split_at_commas(list)) {
    if (name.empty()) malformed(list, "a name is empty");
    if (name[0] == ']' || std::count(name.begin(), name.end(), '[') != std::count(name.begin(), name.end(), ']')) {
      malformed(list, "a bracket is not closed");
    }
    expand_name(list, name, nodes);
    if (nodes.size() > most_nodes) malformed(list, "it names more than a million nodes");
  }
  return nodes;
}

}  // namespace medley
