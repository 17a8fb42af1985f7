// Fuzzes every reader of traces and schedules with one input: each must return or reject it, and never crash
// or hang.
#include <cstring>
#include <sstream>

#include "fuzz/survives.hpp"
#include "replay/schedule_file.hpp"
#include "trace/clocks.hpp"
#include "trace/export.hpp"
#include "trace/import.hpp"
#include "trace/record_reader.hpp"

namespace {

void use(medley::trace::Trace& trace) {
  using namespace medley::trace;
  align_clocks(trace);
  for (const RankTrace& rank : trace.ranks) {
    const Summary summary = summarise(trace, rank, find_steps(trace, rank));
    to_json(summary.rows, trace);
    totals_json(summary.rows, trace);
  }
  to_json(find_problems(trace), trace);
  to_json(find_skew(trace), trace);
  std::ostringstream out;
  write_csv(trace, out);
  write_perfetto(trace, out);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace medley::trace;
  if (size < 1 || size > 65536) return 0;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  Trace trace;
  survives([&] {
    ByteStream stream(text, "f");
    switch (data[0] % 9) {
      case 0: read_records(std::as_bytes(std::span(text)), "f", trace); break;
      case 1: import_deepspeed(stream, trace); break;
      case 2: import_flight_json(text, "f", trace); break;
      case 3: import_flight_pickle(text, "f", trace); break;
      case 4: import_kineto(stream, trace); break;
      case 6: import_nccl_log(stream, trace); break;
      case 7: import_chakra(stream, trace); break;
      case 8: import_chakra_json(text, "f", trace); break;
      default: {
        const auto json = nlohmann::json::parse(text, nullptr, false);
        if (json.is_discarded() || json.contains("plan")) return;  // contains a plan: plan_fuzz fuzzes those
        medley::replay::schedule_from_json(json, "f").of(0, 2);
      }
    }
    use(trace);
  });
  return 0;
}
