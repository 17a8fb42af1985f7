// The events of a Chrome trace of torch.profiler, one at a time: reads only the fields about communication,
// so that a trace of a gigabyte needs memory only for its collectives.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "trace/byte_stream.hpp"

namespace medley::trace {

struct KinetoEvent {
  std::size_t number = 0;  ///< index in traceEvents
  std::string category, name;
  double ts = -1, dur = 0;  ///< µs
  std::int64_t tid = 0;
  // args; -1 or empty: absent
  std::int64_t external_id = -1, in = -1, out = -1, group_size = -1, sequence = -1, source = -1, destination = -1;
  int async = -1;
  std::string collective, dtype, group_name, group_description, group_ranks;
};

struct KinetoInfo {
  std::int64_t rank = -1, world = -1;
  bool has_events = false;  ///< the file has a list of events
};

/// Calls `visit` for every event in file order. Rejects what is not JSON, with the byte.
KinetoInfo read_kineto_events(ByteStream& in, const std::function<void(KinetoEvent&)>& visit);

}  // namespace medley::trace
