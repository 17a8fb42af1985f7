// Reads measured steps; the rest of calibrate.hpp is in calibrate.cpp.
#include <fmt/format.h>

#include <charconv>
#include <medley/error.hpp>
#include <sstream>

#include "plan/cost/calibrate.hpp"

namespace medley::plan {
namespace {

std::vector<std::string> cells(const std::string& line) {
  std::vector<std::string> out;
  std::istringstream row(line);
  for (std::string cell; std::getline(row, cell, ',');) {
    cell.erase(0, cell.find_first_not_of(" \t\r"));
    cell.erase(cell.find_last_not_of(" \t\r") + 1);
    out.push_back(cell);
  }
  return out;
}

class Row {
 public:
  Row(const std::vector<std::string>& header, std::vector<std::string> values, std::string place)
      : header_(header), values_(std::move(values)), place_(std::move(place)) {
    if (values_.size() != header_.size()) {
      refuse(fmt::format("has {} columns where the header has {}", values_.size(), header_.size()));
    }
  }
  double number(std::string_view column) const {
    for (std::size_t i = 0; i < header_.size(); ++i) {
      if (header_[i] != column) continue;
      double value = 0;
      const std::string& text = values_[i];
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (error != std::errc{} || end != text.data() + text.size() || !(value > 0) || value > 1e15) {
        refuse(fmt::format("column '{}' is '{}'; a positive number is needed", column, text));
      }
      return value;
    }
    refuse(fmt::format("column '{}' is missing", column));
  }
  Count count(std::string_view column) const { return static_cast<Count>(number(column)); }
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(ErrorKind::invalid, place_ + " " + what);
  }

 private:
  const std::vector<std::string>& header_;
  std::vector<std::string> values_;
  std::string place_;
};

MeasuredStep read_row(const Row& row, Count vocab, const std::string& place) {
  MeasuredStep step;
  Model& m = step.model;
  m.hidden = row.count("hidden size");
  m.heads = m.kv_heads = row.count("attention heads");
  m.head_dim = m.hidden / m.heads;
  m.layers = row.count("# layers");
  m.ffn = 4 * m.hidden;
  m.vocab = vocab;
  m.seq = row.count("sequence length");
  m.positions = Positions::learned;
  m.position_rows = m.seq;
  m.tied_embeddings = true;
  m.fused_qkv = true;
  check(m, place);
  Layout& l = step.layout;
  l.tp = static_cast<int>(row.count("tensor parallelism"));
  l.dp = static_cast<int>(row.count("data parallelism"));
  l.pp = static_cast<int>(row.count("pipeline parallelism"));
  l.micro_batch = row.count("micro batch");
  l.global_batch = row.count("global batch");
  l.dtype = DType::f16;
  l.flags.flash_attention = false;
  if (row.count("# GPUs") != l.world())
    row.refuse("has parallel sizes whose product is not its number of GPUs");
  check(l, m);
  step.us = row.number("iteration time (ms)") * 1e3;
  return step;
}

}  // namespace

std::vector<MeasuredStep> read_measured(std::string_view csv, const std::string& source, Count vocab) {
  std::istringstream lines{std::string(csv)};
  std::string line;
  std::getline(lines, line);
  const std::vector<std::string> header = cells(line);
  std::vector<MeasuredStep> steps;
  for (int number = 2; std::getline(lines, line); ++number) {
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    const std::string place = fmt::format("{}:{}", source, number);
    steps.push_back(read_row(Row(header, cells(line), place), vocab, place));
  }
  if (steps.empty()) throw Error(ErrorKind::invalid, source + ": no rows");
  return steps;
}

}  // namespace medley::plan
