// DeepSpeed's comms logger prints a table of sums per operation and message size, on request a second table
// with the time spent on stragglers, and in verbose mode a line per operation. It has no groups, rounds sizes
// to two decimals of a binary unit and logs one rank's input: the shard of an all_gather. It synchronises the
// device after every operation, so its times say nothing about overlap.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sstream>

#include "trace/import.hpp"
#include "trace/import_parts.hpp"
#include "trace/log_readers.hpp"

namespace medley::trace {
namespace {

/// "98.25 MB", "2.0 KB", "0B".
std::optional<double> size_of_text(const std::string& number, const std::string& unit) {
  static const std::string units[] = {"B", "KB", "MB", "GB", "TB", "PB"};
  char* end = nullptr;
  const double value = std::strtod(number.c_str(), &end);
  std::string rest(end);
  if (end == number.c_str() || !(value >= 0) || value > 1e6) return std::nullopt;
  if (rest.empty()) rest = unit;
  for (int i = 0; i < 6; ++i) {
    if (rest == units[i]) return value * std::pow(1024.0, i);
  }
  return std::nullopt;
}

}  // namespace

class DeepSpeedLog::Reader {
 public:
  Reader(const std::string& place, Trace& trace) : place_(place), trace_(trace), list_(std::make_shared<EventList>()) {
    Group group;
    group.name = "(not logged)";
    group_ = trace.group(group);
  }

  void line(const std::string& text, std::size_t number) {
    where_ = fmt::format("{}: line {}", place_, number);
    if (text.find("Comm. Op") != std::string::npos) {
      // A summary covers everything since the start, so only the last one counts. The table of stragglers
      // repeats it; its columns count only when it is the only table.
      const bool stragglers = text.find("straggler") != std::string::npos;
      in_table_ = !stragglers || list_->events.empty() || verbose_;
      if (in_table_) list_->events.clear();
      verbose_ = interrupted_ = false;
      tables_ = true;
      op_.reset();
      name_ = "Comm. Op";
      return;
    }
    if (!tables_ && verbose_line(text)) return;
    if (in_table_) table_line(text);
  }
  bool found() const { return tables_ || !list_->events.empty(); }

  void finish(int label) {
    if (list_->events.empty()) refuse_import(place_, "the comms logger's table has no rows");
    RankTrace rank;
    rank.rank = std::max(0, label);
    rank.file = place_;
    rank.issued = 0;
    for (const Event& event : list_->events) rank.issued += event.count;
    rank.events = list_;
    trace_.ranks.push_back(std::move(rank));
    trace_.format = "deepspeed comms logger";
    const auto remark = [&](const std::string& text) {
      if (std::find(trace_.remarks.begin(), trace_.remarks.end(), text) == trace_.remarks.end())
        trace_.remarks.push_back(text);
    };
    remark("the comms logger has no groups and rounds sizes to two decimals");
    if (world_ > 1) {
      trace_.groups[group_].size = static_cast<int>(world_);
      for (Event& event : list_->events) event.bytes *= event.op == Op::all_gather ? world_ : 1;
      remark(fmt::format("it logs all_gather's shard: taken {} times, the world size behind its busbw", world_));
    } else {
      remark(
          "it logs all_gather's shard, and its bandwidths are too coarse to tell the world size: sizes of "
          "all_gather stay the shard's");
    }
    remark("it waits for the device after every operation: nothing overlaps while it is on");
  }

 private:
  /// "… comm op: all_reduce | time (ms): 0.12 | msg size: 4.0 B | algbw (Gbps): …".
  bool verbose_line(const std::string& text) {
    const std::size_t at = text.find("comm op: ");
    const std::size_t time = text.find("time (ms): "), size = text.find("msg size: ");
    if (at == std::string::npos || time == std::string::npos || size == std::string::npos) return false;
    name_ = text.substr(at + 9, text.find(" |", at) - at - 9);
    op_ = foreign_op(name_.substr(0, name_.find('|')));
    std::istringstream words(text.substr(size + 10));
    std::string number, unit;
    words >> number >> unit;
    const auto bytes = size_of_text(number, unit);
    const double ms = std::strtod(text.c_str() + time + 11, nullptr);
    if (!op_ || !bytes || !(ms >= 0 && ms < 1e12))
      refuse_import(where_, "is a verbose line of the comms logger without an operation, a time or a size");
    add(*bytes, 1, ms);
    verbose_ = true;
    return true;
  }

  /// Lines that end a table.
  static bool is_rule(const std::string& text) {
    return text.find_first_not_of("_-=* \t") == std::string::npos || text.starts_with("Breakdown");
  }

  /// Other output may come between the lines of a table, which are printed one by one; the table goes on after it.
  void table_line(const std::string& text) {
    if (is_rule(text)) {
      in_table_ = false;
      return;
    }
    std::istringstream words(text);
    std::vector<std::string> fields;
    for (std::string word; words >> word;) fields.push_back(word);
    if (fields.empty()) return;
    if (text[0] == ' ' || text[0] == '\t') {
      if (!interrupted_ || looks_like_row(fields)) row(fields);
      return;
    }
    // Record names may carry "all_reduce | [Caller Func: f]".
    const bool alone = fields.size() == 1;
    if (alone || (foreign_op(fields[0]) && text.find("Caller") != std::string::npos)) {
      name_ = alone ? fields[0].substr(0, fields[0].find("_|_")) : text;
      op_ = foreign_op(alone ? name_.substr(0, name_.find('|')) : fields[0]);
    } else {
      interrupted_ = true;
    }
  }

  /// A size, a count and four figures with two decimals.
  static bool looks_like_row(const std::vector<std::string>& fields) {
    const std::size_t at = fields.size() == 7 ? 2 : 1;
    if (fields.size() != at + 5 || !size_of_text(fields[0], at == 2 ? fields[1] : "")) return false;
    if (fields[at].find_first_not_of("0123456789") != std::string::npos) return false;
    return std::all_of(
        fields.begin() + static_cast<std::ptrdiff_t>(at) + 1, fields.end(),
        [](const std::string& field) { return field.find_first_not_of("0123456789.-+einfa") == std::string::npos; });
  }

  /// busbw is (n-1)/n of tput for these operations, where n is the size of the world. Large figures give n
  /// most precisely.
  void look_for_world(const std::vector<std::string>& fields, std::size_t at) {
    if (fields.size() < at + 5 || (*op_ != Op::all_gather && *op_ != Op::all_to_all && *op_ != Op::reduce_scatter))
      return;
    const double tput = std::strtod(fields[at + 3].c_str(), nullptr),
                 busbw = std::strtod(fields[at + 4].c_str(), nullptr);
    if (!(busbw > 0 && busbw < tput && tput > best_tput_)) return;
    const double low = 1 / (1 - (busbw - 0.005) / (tput + 0.005)), high = 1 / (1 - (busbw + 0.005) / (tput - 0.005));
    const double n = std::round((low + high) / 2);
    if (!(low > 1 && high - low < 0.9 && n >= 2 && n < 1e6 && n > low - 0.5 && n < high + 0.5)) return;
    best_tput_ = tput;
    world_ = static_cast<std::int64_t>(n);
  }

  void row(const std::vector<std::string>& fields) {
    if (!op_) refuse_import(where_, fmt::format("\"{}\" is not an operation that the comms logger has", name_));
    const bool split = fields.size() > 1 && (fields[1].find('B') != std::string::npos);
    const std::size_t at = split ? 2 : 1;
    const auto size = size_of_text(fields[0], split ? fields[1] : "");
    if (!size || fields.size() < at + 3) refuse_import(where_, "expected a message size, a count and latencies");
    char* end = nullptr;
    const long long count = std::strtoll(fields[at].c_str(), &end, 10);
    if (*end != '\0' || count < 1 || count > (1ll << 40))
      refuse_import(where_, fmt::format("\"{}\" is not a count", fields[at]));
    const double total_ms = std::strtod(fields[at + 1].c_str(), &end);
    if (*end != '\0' || !(total_ms >= 0 && total_ms < 1e15)) {
      refuse_import(where_, fmt::format("\"{}\" is not a latency", fields[at + 1]));
    }
    look_for_world(fields, at);
    add(*size, count, total_ms);
  }

  void add(double bytes, std::int64_t count, double total_ms) {
    Event event;
    event.op = *op_;
    event.matched = false;
    event.unknown = {Field::group, Field::rounding, Field::dtype, Field::reduce,
                     Field::root,  Field::phase,    Field::async};
    if (count > 1 || tables_) event.unknown.add(Field::order);
    event.group = group_;
    event.scope = trace_.name(name_);
    event.bytes = std::llround(bytes);
    event.count = count;
    event.issued = event.started = clock_;
    event.completed = clock_ + total_ms * 1e6 / static_cast<double>(count);
    event.exposed = event.duration();
    clock_ += total_ms * 1e6;
    list_->events.push_back(event);
  }

  const std::string& place_;
  Trace& trace_;
  std::shared_ptr<EventList> list_;
  std::uint32_t group_ = 0;
  std::string where_, name_;
  std::optional<Op> op_;
  bool in_table_ = false, tables_ = false, verbose_ = false, interrupted_ = false;
  double clock_ = 0, best_tput_ = 0;
  std::int64_t world_ = 0;
};

LabelledLine unlabelled(std::string_view line) noexcept {
  if (line.empty() || line[0] != '[') return {-1, line};
  std::size_t at = 1;
  for (const std::string_view word : {std::string_view("rank"), std::string_view("default")})
    if (line.substr(at).starts_with(word)) at += word.size();
  int rank = 0;
  const std::size_t digits = at;
  while (at < line.size() && at < digits + 7 && line[at] >= '0' && line[at] <= '9')
    rank = rank * 10 + (line[at++] - '0');
  if (at == digits || !line.substr(at).starts_with("]:")) return {-1, line};
  line.remove_prefix(at + 2);
  if (line.starts_with(' ')) line.remove_prefix(1);
  return {rank, line};
}

DeepSpeedLog::DeepSpeedLog(const std::string& place, Trace& trace) : place_(place), trace_(trace) {}
DeepSpeedLog::~DeepSpeedLog() = default;

/// pdsh, which starts DeepSpeed's jobs of several hosts, writes "host: " before each line, and srun -l the task's
/// number. A table shows the prefix by its first line.
LabelledLine DeepSpeedLog::without_prefix(std::string_view line) {
  const std::size_t colon = line.find(": ");
  if (colon == std::string_view::npos || colon > 255) return {-1, line};
  const std::string prefix(line.substr(0, colon));
  const std::string_view rest = line.substr(colon + 2);
  auto known = prefixes_.find(prefix);
  if (known == prefixes_.end()) {
    if (!rest.starts_with("Comm. Op")) return {-1, line};
    const std::size_t digits = std::min(prefix.find_first_not_of(' '), prefix.size());
    const bool number = digits < prefix.size() && prefix.size() - digits < 7 &&
                        prefix.find_first_not_of("0123456789", digits) == std::string::npos;
    // Below -1: tables of hosts, whose rank is not known.
    const int label = number ? std::atoi(prefix.c_str() + digits) : -2 - static_cast<int>(prefixes_.size());
    known = prefixes_.emplace(prefix, label).first;
  }
  return {known->second, rest};
}

void DeepSpeedLog::line(std::string_view text, std::size_t number) {
  LabelledLine labelled = unlabelled(text);
  if (labelled.rank < 0) labelled = without_prefix(text);
  auto& reader = readers_[labelled.rank];
  if (!reader) {
    if (readers_.size() > 65536) refuse_import(place_, "labels lines with more than 65,536 ranks");
    reader = std::make_unique<Reader>(place_, trace_);
  }
  reader->line(std::string(labelled.text), number);
}

bool DeepSpeedLog::found() const {
  return std::any_of(readers_.begin(), readers_.end(), [](const auto& r) { return r.second->found(); });
}

void DeepSpeedLog::finish() {
  if (!found()) refuse_import(place_, "holds neither a table nor a verbose line of DeepSpeed's comms logger");
  for (auto& [rank, reader] : readers_)
    if (reader->found()) reader->finish(rank);
}

void import_deepspeed(ByteStream& in, Trace& trace) {
  DeepSpeedLog log(in.name(), trace);
  std::string line;
  for (std::size_t number = 1; in.line(line); ++number) log.line(line, number);
  log.finish();
}

}  // namespace medley::trace
