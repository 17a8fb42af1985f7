#include "trace/import.hpp"

#include <fmt/format.h>

#include <medley/error.hpp>

#include "trace/import_parts.hpp"
#include "trace/log_readers.hpp"

namespace medley::trace {
namespace {

namespace fs = std::filesystem;

// Formats that are read whole: dumps of a ring of some thousand entries.
constexpr std::size_t most_bytes = std::size_t{1} << 30;

enum class Format { none, pickle, kineto, flight_json, chakra, chakra_json, execution_trace, log };

/// A Chakra trace starts with the length of a short message: the schema's version as text, or attributes,
/// each of which starts with its name.
bool looks_like_chakra(std::string_view head) {
  if (head.size() < 5 || head[0] < 4 || head[2] < 1 || head[2] > head[0] - 2) return false;
  const bool version = head[1] == '\x0a' && head[3] >= '0' && head[3] <= '9';
  return version || (head[1] == '\x12' && head[3] == '\x0a');
}

Format format_of(std::string_view head) {
  if (head.size() >= 2 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5) return Format::pickle;
  const auto has = [&](std::string_view word) { return head.find(word) != std::string_view::npos; };
  const std::size_t first = head.find_first_not_of(" \t\r\n");
  const bool labelled = unlabelled(head).rank >= 0;
  const bool json = first != std::string_view::npos && (head[first] == '{' || (head[first] == '[' && !labelled));
  if (json && has("\"workload_graph\"")) return Format::chakra_json;
  if (json && has("\"schema\"") && has("chakra") && has("\"nodes\"")) return Format::execution_trace;
  if (json && has("\"schema\"") && has("\"nodes\"") && !has("\"ph\"")) return Format::execution_trace;
  if (json && (has("\"traceEvents\"") || has("\"ph\"") || has("\"schemaVersion\""))) return Format::kineto;
  if (json && (has("\"entries\"") || has("\"pg_config\"") || has("\"pg_status\"") || has("\"profiling_name\"")))
    return Format::flight_json;
  if (has("Comm. Op") || has("comm op: ") || has("NCCL INFO")) return Format::log;
  if (looks_like_chakra(head)) return Format::chakra;
  return json && head[first] == '{' ? Format::flight_json : Format::none;
}

/// Text without bytes that never occur in logs.
bool looks_like_text(std::string_view head) { return !head.empty() && head.find('\0') == std::string_view::npos; }

/// A job may print both: NCCL's lines take precedence, because they have groups and exact sizes.
void import_log(ByteStream& in, Trace& trace) {
  Trace other = trace;
  DeepSpeedLog deepspeed(in.name(), other);
  NcclLog nccl(in.name(), trace);
  std::string line;
  for (std::size_t number = 1; in.line(line); ++number) {
    nccl.line(line, number);
    if (!nccl.found()) deepspeed.line(line, number);
  }
  if (nccl.found()) return nccl.finish();
  if (!deepspeed.found()) {
    refuse_import(in.name(),
                  "is neither a record file of Medley, a log with DeepSpeed's comms logger (\"Comm. Op\", "
                  "\"comm op:\") or "
                  "NCCL's calls (NCCL_DEBUG_SUBSYS=COLL) in it, a dump of PyTorch's flight recorder, a "
                  "Chrome trace nor a "
                  "Chakra trace");
  }
  deepspeed.finish();
  trace = std::move(other);
}

}  // namespace

bool looks_importable(const fs::path& path) {
  try {
    ByteStream in(path);
    return format_of(in.head()) != Format::none;
  } catch (const Error&) {
    return false;  // damaged: opening the file by its own name reports it
  }
}

void import_file(const fs::path& path, Trace& trace) {
  ByteStream in(path);
  const std::string_view head = in.head();
  switch (format_of(head)) {
    case Format::pickle: return import_flight_pickle(in.rest(most_bytes), path.native(), trace);
    case Format::kineto: return import_kineto(in, trace);
    case Format::flight_json: return import_flight_json(in.rest(most_bytes), path.native(), trace);
    case Format::chakra: return import_chakra(in, trace);
    case Format::chakra_json: return import_chakra_json(in.rest(most_bytes), path.native(), trace);
    case Format::execution_trace:
      refuse_import(path.native(),
                    "is an execution trace of PyTorch, which has no times: chakra_trace_link joins it with a Chrome "
                    "trace, "
                    "and chakra_converter makes the .et that is read here; the Chrome trace alone is read too");
    case Format::log: return import_log(in, trace);
    case Format::none: break;
  }
  if (looks_like_text(head)) return import_log(in, trace);
  refuse_import(path.native(),
                "is neither a record file of Medley, a log of DeepSpeed's comms logger or of NCCL, a dump of PyTorch's "
                "flight recorder, a Chrome trace nor a Chakra trace");
}

}  // namespace medley::trace
