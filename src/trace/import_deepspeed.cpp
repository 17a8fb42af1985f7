// DeepSpeed's comms logger prints a table of sums per operation and message size, and in verbose mode a line
// per operation. It has no groups, rounds sizes to two decimals of a binary unit and logs what one rank
// gives: the shard of an all_gather. It synchronises the device after every operation, so its times say
// nothing about overlap.
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <sstream>

#include "trace/import.hpp"
#include "trace/import_parts.hpp"

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

class Reader {
 public:
  Reader(const std::string& place, Trace& trace)
      : place_(place), trace_(trace), list_(std::make_shared<EventList>()) {
    Group group;
    group.name = "(not logged)";
    group_ = trace.group(group);
  }

  void line(const std::string& text, std::size_t number) {
    where_ = fmt::format("{}: line {}", place_, number);
    if (text.find("Comm. Op") != std::string::npos) {
      // A summary holds everything since the start: only the last one counts. The table of stragglers repeats
      // it.
      in_table_ = text.find("Total Latency") != std::string::npos;
      if (in_table_) list_->events.clear();
      op_.reset();
      return;
    }
    if (in_table_) table_line(text);
  }

  void finish() {
    if (list_->events.empty()) refuse_import(place_, "the comms logger's table has no rows");
    RankTrace rank;
    rank.file = place_;
    rank.issued = 0;
    for (const Event& event : list_->events) rank.issued += event.count;
    rank.events = list_;
    trace_.ranks.push_back(std::move(rank));
    trace_.format = "deepspeed comms logger";
    trace_.remarks.push_back("the comms logger has no groups and rounds sizes to two decimals");
    if (world_ > 1) {
      trace_.groups[group_].size = static_cast<int>(world_);
      for (Event& event : list_->events) event.bytes *= event.op == Op::all_gather ? world_ : 1;
      trace_.remarks.push_back(
          fmt::format("it logs all_gather's shard: taken {} times, the world size behind its busbw", world_));
    } else {
      trace_.remarks.push_back(
          "it logs all_gather's shard, and its bandwidths are too coarse to tell the world size: sizes of "
          "all_gather stay the shard's");
    }
    trace_.remarks.push_back(
        "it waits for the device after every operation: nothing overlaps while it is on");
  }

 private:
  void table_line(const std::string& text) {
    std::istringstream words(text);
    std::vector<std::string> fields;
    for (std::string word; words >> word;) fields.push_back(word);
    if (fields.empty()) return;
    const bool indented = text[0] == ' ' || text[0] == '\t';
    if (!indented && fields.size() == 1) {
      name_ = fields[0].substr(0, fields[0].find("_|_"));
      const std::size_t bracket = name_.find('|');  // record names may carry "all_reduce | [Caller Func: f]"
      op_ = foreign_op(name_.substr(0, bracket));
      if (!op_)
        refuse_import(where_, fmt::format("\"{}\" is not an operation that the comms logger has", fields[0]));
      return;
    }
    if (!indented && fields.size() > 1 && foreign_op(fields[0]) && text.find("Caller") != std::string::npos) {
      name_ = text;
      op_ = foreign_op(fields[0]);
      return;
    }
    if (!indented || !op_) {
      in_table_ = false;  // the table is over; the log goes on
      return;
    }
    row(fields);
  }

  /// busbw is (n-1)/n of tput for these operations, n the world's size; the larger the figures, the better
  /// they tell it.
  void look_for_world(const std::vector<std::string>& fields, std::size_t at) {
    if (fields.size() < at + 5 ||
        (*op_ != Op::all_gather && *op_ != Op::all_to_all && *op_ != Op::reduce_scatter))
      return;
    const double tput = std::strtod(fields[at + 3].c_str(), nullptr),
                 busbw = std::strtod(fields[at + 4].c_str(), nullptr);
    if (!(busbw > 0 && busbw < tput && tput > best_tput_)) return;
    const double low = 1 / (1 - (busbw - 0.005) / (tput + 0.005)),
                 high = 1 / (1 - (busbw + 0.005) / (tput - 0.005));
    const double n = std::round((low + high) / 2);
    if (!(low > 1 && high - low < 0.9 && n >= 2 && n < 1e6 && n > low - 0.5 && n < high + 0.5)) return;
    best_tput_ = tput;
    world_ = static_cast<std::int64_t>(n);
  }

  void row(const std::vector<std::string>& fields) {
    const bool split = fields.size() > 1 && (fields[1].find('B') != std::string::npos);
    const std::size_t at = split ? 2 : 1;
    const auto size = size_of_text(fields[0], split ? fields[1] : "");
    if (!size || fields.size() < at + 3)
      refuse_import(where_, "expected a message size, a count and latencies");
    char* end = nullptr;
    const long long count = std::strtoll(fields[at].c_str(), &end, 10);
    if (*end != '\0' || count < 1 || count > (1ll << 40))
      refuse_import(where_, fmt::format("\"{}\" is not a count", fields[at]));
    const double total_ms = std::strtod(fields[at + 1].c_str(), &end);
    if (*end != '\0' || !(total_ms >= 0 && total_ms < 1e15)) {
      refuse_import(where_, fmt::format("\"{}\" is not a latency", fields[at + 1]));
    }
    look_for_world(fields, at);
    Event event;
    event.op = *op_;
    event.matched = false;
    event.unknown = {Field::group, Field::bytes, Field::dtype, Field::reduce,
                     Field::root,  Field::phase, Field::async, Field::order};
    event.group = group_;
    event.scope = trace_.name(name_);
    event.bytes = std::llround(*size);
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
  bool in_table_ = false;
  double clock_ = 0, best_tput_ = 0;
  std::int64_t world_ = 0;
};

}  // namespace

void import_deepspeed(std::string_view text, const std::string& place, Trace& trace) {
  Reader reader(place, trace);
  std::size_t number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string line(text.substr(at, end - at));
    if (!line.empty() && line.back() == '\r') line.pop_back();
    reader.line(line, ++number);
    at = end + 1;
  }
  reader.finish();
}

}  // namespace medley::trace
