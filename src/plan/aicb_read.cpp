#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "model/text.hpp"
#include "plan/aicb.hpp"

namespace medley::plan {
namespace {

std::string without_prefix(const std::string& cell) {
  const auto dot = cell.find('.');
  return dot == std::string::npos ? cell : cell.substr(dot + 1);
}

std::string group_name(const std::string& cell) {
  const std::string name = without_prefix(cell);
  const auto end = name.rfind("_group");
  return end == std::string::npos ? name : name.substr(0, end);
}

struct Columns {
  std::size_t op = 0, group = 1, size = 2, bytes = 3, stage = 4;
};

Columns columns_of(const std::vector<std::string>& header, const std::string& source) {
  const auto find = [&](const char* name) {
    const auto at = std::find(header.begin(), header.end(), name);
    if (at == header.end()) refuse_at(source, fmt::format("column {} is missing; is it an AICB workload?", name));
    return static_cast<std::size_t>(at - header.begin());
  };
  return {find("comm_type"), find("comm_group"), find("comm_group_size"), find("msg_size"), find("stage")};
}

Count whole(const std::string& cell, const std::string& source, const char* column) {
  return cell.empty() || cell == "None" ? 0 : parse_count(cell, source, column);
}

}  // namespace

AicbList read_aicb(const std::string& text, const std::string& source, int stage) {
  AicbList list;
  Columns columns;
  bool header_seen = false;
  int section = -1, steps = -1;  // step −1 is the setup
  Count line_number = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    ++line_number;
    const std::string place = fmt::format("{}:{}", source, line_number);
    const auto cells = split(line, ',');
    if (trimmed(line).empty() || line[0] == '[') continue;
    if (cells[0] == "comm_type") {
      columns = columns_of(cells, place);
      header_seen = true;
      ++section;
      steps = -1;
      continue;
    }
    if (!header_seen) refuse_at(place, "has no header comm_type,comm_group,…; is it an AICB workload?");
    const std::string kind = without_prefix(cells[0]);
    if (kind == "computation") continue;  // its size is a tuple of shapes
    if (kind == "epoch_end") {
      ++steps;
      continue;
    }
    if (cells.size() <= columns.stage) refuse_at(place, fmt::format("has {} columns; stage is missing", cells.size()));
    if (section != stage && section != 0) continue;
    if (steps < 0) {
      if (section == 0) ++list.setup_rows;
      continue;
    }
    if (section != stage || steps > 0) continue;
    const std::string name = kind == "isend" ? "send" : kind == "irecv" ? "recv" : kind;
    const auto op = parse_op(name);
    if (!op) refuse_at(place, fmt::format("operation '{}' is not known", kind));
    if (*op == Op::barrier) continue;
    const Count bytes = whole(cells[columns.bytes], place, "msg_size"),
                size = whole(cells[columns.size], place, "comm_group_size");
    if (bytes > 0) list.rows.push_back({*op, group_name(cells[columns.group]), size, bytes, cells[columns.stage]});
  }
  if (!header_seen) refuse_at(source, "holds no AICB workload: its header comm_type,comm_group,… is missing");
  list.stages = section + 1;
  list.ends = list.stages > 1 || steps >= 1;  // lists of pipelines end before the optimizer
  // A list with a single section serves for every stage.
  if (list.stages == 1 && stage > 0) return read_aicb(text, source, 0);
  if (stage >= list.stages)
    refuse_at(source, fmt::format("has {} pipeline stages; stage {} was asked for", list.stages, stage));
  return list;
}

}  // namespace medley::plan
