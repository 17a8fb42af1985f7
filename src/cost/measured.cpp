// Reads measured steps; the rest of calibrate.hpp is in calibrate.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <functional>
#include <medley/error.hpp>
#include <sstream>

#include "cost/calibrate.hpp"
#include "model/read_layout.hpp"

namespace medley::cost {
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
  double number(std::string_view column) const { return number_from(column, 1e-12); }
  double number_from(std::string_view column, double least) const {
    for (std::size_t i = 0; i < header_.size(); ++i) {
      if (header_[i] != column) continue;
      double value = 0;
      const std::string& text = values_[i];
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (error != std::errc{} || end != text.data() + text.size() || !(value >= least) || value > 1e15) {
        refuse(fmt::format("column '{}' is '{}'; a positive number is needed", column, text));
      }
      return value;
    }
    refuse(fmt::format("column '{}' is missing", column));
  }
  bool has(std::string_view column) const { return !text(column).empty() && text(column) != "n/a"; }
  /// The cell; empty if the file has no such column.
  std::string text(std::string_view column) const {
    for (std::size_t i = 0; i < header_.size(); ++i)
      if (header_[i] == column) return values_[i];
    return {};
  }
  int size_or(std::string_view column, int otherwise) const {
    return has(column) ? static_cast<int>(number_from(column, 0)) : otherwise;
  }
  Count count(std::string_view column) const { return static_cast<Count>(number(column)); }
  [[noreturn]] void refuse(const std::string& what) const { throw Error(ErrorKind::invalid, place_ + " " + what); }

 private:
  const std::vector<std::string>& header_;
  std::vector<std::string> values_;
  std::string place_;
};

MeasuredStep read_vtrain_row(const Row& row, Count vocab, const std::string& place) {
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
  if (row.count("# GPUs") != l.world()) row.refuse("has parallel sizes whose product is not its number of GPUs");
  check(l, m);
  step.us = row.number("iteration time (ms)") * 1e3;
  return step;
}

/// The row's model: its shape if the file gives it, else a name of the zoo.
Model step_model(const Row& row) {
  if (!row.has("h")) return model::read_model(row.text("model"));
  std::string text;
  for (const auto& [column, key] : {std::pair{"h", "h"},
                                    {"a", "a"},
                                    {"kv", "kv"},
                                    {"layers", "layers"},
                                    {"ffn", "ffn"},
                                    {"vocab", "vocab"},
                                    {"seq", "seq"}})
    if (row.has(column)) text += fmt::format("{}={},", key, row.text(column));
  text += row.text("gated") == "1" ? "family=llama" : "family=gpt2";
  if (row.has("tied")) text += row.text("tied") == "1" ? ",tied=on" : ",tied=off";
  return model::read_model(text);
}

/// The step's time: as given, from a recorded run, or from the throughput.
double step_time_us(const Row& row, const std::string& source, double tokens_per_gpu, const TraceTime& trace_time) {
  if (row.has("step_ms")) return row.number("step_ms") * 1e3;
  if (!row.has("trace")) return tokens_per_gpu / row.number("tokens_per_s_per_gpu") * 1e6;
  if (!trace_time) row.refuse("names a trace, which only medley plan calibrate reads");
  return trace_time((std::filesystem::path(source).parent_path() / row.text("trace")).string());
}

MeasuredStep read_step_row(const Row& row, const std::string& place, const std::string& source,
                           const TraceTime& trace_time) {
  MeasuredStep step;
  step.model = step_model(row);
  step.gpu = row.text("gpu");
  const std::string framework = row.text("framework");
  const auto named = parse_framework(framework.starts_with("fsdp ") ? "fsdp1" : std::string_view(framework));
  if (!named) row.refuse(fmt::format("column 'framework' is '{}', which is not known", framework));
  step.framework = *named;
  Layout& l = step.layout;
  if (row.has("layout")) l = model::read_layout(row.text("layout"));
  l.tp = row.size_or("tp", l.tp);
  l.pp = row.size_or("pp", l.pp);
  l.cp = row.size_or("cp", l.cp);
  l.ep = row.size_or("ep", l.ep);
  l.etp = row.size_or("etp", l.etp);
  l.virtual_stages = row.size_or("vp", l.virtual_stages);
  const Count gpus = row.count("gpus");
  l.dp = row.size_or("dp", static_cast<int>(gpus / (Count{l.tp} * l.pp * l.cp)));
  if (gpus != l.world()) row.refuse("has parallel sizes whose product is not its number of GPUs");
  l.zero = row.size_or("zero", l.zero);
  l.sp = l.sp || l.tp > 1;
  for (const char* key : {"recompute", "compile", "dtype"})
    if (row.has(key)) model::set_layout_key(l, key, row.text(key), place);
  if (row.has("precision")) l.flags.fp8 = row.text("precision") != "bf16" && row.text("precision") != "BF16";
  l.micro_batch = row.count("micro_batch");
  l.global_batch = row.count("global_batch");
  l.seq = row.count("seq");
  check(l, step.model);
  const double tokens = static_cast<double>(l.global_batch) * static_cast<double>(l.seq);
  step.us = step_time_us(row, source, tokens / static_cast<double>(gpus), trace_time);
  return step;
}

/// One sentence on every bad row, the first twenty in full.
[[noreturn]] void refuse_rows(const std::vector<std::string>& bad, std::size_t rows) {
  constexpr std::size_t shown = 20;
  std::string text =
      fmt::format("{} of {} rows cannot be used; correct them or skip them (--skip-bad-rows):", bad.size(), rows);
  for (std::size_t i = 0; i < std::min(shown, bad.size()); ++i) text += "\n  " + bad[i];
  if (bad.size() > shown) text += fmt::format("\n  and {} more", bad.size() - shown);
  throw Error(ErrorKind::invalid, text);
}

/// "file:line: what is wrong"; messages that already begin with their place keep it.
std::string at_line(const std::string& place, const std::string& what) {
  return what.starts_with(place) ? what : fmt::format("{}: {}", place, what);
}

std::vector<MeasuredStep> read_rows(std::string_view csv, const std::string& source, std::vector<std::string>* skipped,
                                    const std::function<MeasuredStep(const Row&, const std::string&)>& read) {
  std::istringstream lines{std::string(csv)};
  std::string line;
  std::getline(lines, line);
  const std::vector<std::string> header = cells(line);
  std::vector<MeasuredStep> steps;
  std::vector<std::string> bad;
  for (int number = 2; std::getline(lines, line); ++number) {
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    const std::string place = fmt::format("{}:{}", source, number);
    std::vector<std::string> values = cells(line);
    values.resize(std::max(values.size(), header.size()));  // empty cells at the end
    try {
      steps.push_back(read(Row(header, std::move(values), place), place));
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::invalid) throw;
      bad.push_back(at_line(place, error.what()));
    }
  }
  if (!bad.empty() && !skipped) refuse_rows(bad, bad.size() + steps.size());
  if (steps.empty()) throw Error(ErrorKind::invalid, source + (bad.empty() ? ": no rows" : ": no usable row"));
  if (skipped) skipped->insert(skipped->end(), bad.begin(), bad.end());
  return steps;
}

}  // namespace

std::vector<MeasuredStep> read_vtrain(std::string_view csv, const std::string& source, Count vocab,
                                      std::vector<std::string>* skipped) {
  return read_rows(csv, source, skipped,
                   [&](const Row& row, const std::string& place) { return read_vtrain_row(row, vocab, place); });
}

std::vector<MeasuredStep> read_steps(std::string_view csv, const std::string& source, std::vector<std::string>* skipped,
                                     const TraceTime& trace_time) {
  return read_rows(csv, source, skipped, [&](const Row& row, const std::string& place) {
    return read_step_row(row, place, source, trace_time);
  });
}

std::vector<MeasuredStep> read_measured(std::string_view csv, const std::string& source, Count vocab,
                                        std::vector<std::string>* skipped, const TraceTime& trace_time) {
  return csv.substr(0, csv.find('\n')).find("iteration time") != csv.npos
             ? read_vtrain(csv, source, vocab, skipped)
             : read_steps(csv, source, skipped, trace_time);
}

}  // namespace medley::cost
