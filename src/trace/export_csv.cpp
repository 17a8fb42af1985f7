#include <fmt/format.h>

#include <iterator>

#include "trace/export.hpp"

namespace medley::trace {
namespace {

/// Names come from users: quotes are doubled, as spreadsheets expect.
std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + "\"";
}

std::string time_text(double ns) { return ns < 0 ? "" : fmt::format("{:.3f}", ns / 1e3); }

}  // namespace

void write_csv(const Trace& trace, std::ostream& out) {
  out << "rank,op,group,group_size,sequence,bytes,count,dtype,phase,module,backend,algorithm,peer,async,"
         "state,issued_us,"
         "started_us,completed_us,exposed_us\n";
  std::string lines;
  for (const RankTrace& rank : trace.ranks) {
    rank.for_each([&](const Event& e) {
      const Group& group = trace.groups[e.group];
      const ScopeParts scope = parts_of_scope(trace.names[e.scope]);
      fmt::format_to(std::back_inserter(lines), "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", rank.rank,
                     name(e.op), quoted(group.name), group.size, e.sequence, e.bytes, e.count, name(e.dtype),
                     scope.phase, quoted(std::string(scope.module)), quoted(trace.names[e.backend]),
                     quoted(trace.names[e.algorithm]), e.peer < 0 ? "" : std::to_string(e.peer), e.async ? 1 : 0,
                     name(e.state), time_text(e.issued), time_text(e.started), time_text(e.completed),
                     trace.waits_known && e.exposed_known ? time_text(e.exposed) : "");
      if (lines.size() < (1 << 20)) return;
      out << lines;
      lines.clear();
    });
  }
  out << lines;
}

}  // namespace medley::trace
