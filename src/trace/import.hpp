// Importers of other tools' traces; they convert sizes to full tensors (CONTRACT's `bytes`). One file per
// format. Each rejects what it does not understand and says where.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "trace/byte_stream.hpp"
#include "trace/trace.hpp"

namespace medley::trace {

/// Adds the content of the file to the trace; rejects a file that fits none of the formats.
void import_file(const std::filesystem::path& path, Trace& trace);
/// Whether its name and first bytes fit a format below.
bool looks_importable(const std::filesystem::path& path);

/// DeepSpeed's comms logger in a training log: the last table of log_summary(), with or without stragglers;
/// without a table, the lines that verbose mode prints for each operation.
void import_deepspeed(ByteStream& in, Trace& trace);
/// PyTorch's flight recorder as JSON (dumped with --json or by torchfrtrace -j).
void import_flight_json(std::string_view text, const std::string& place, Trace& trace);
/// The same as torch writes it: a pickle. Only plain values are read; nothing in it is ever run.
void import_flight_pickle(std::string_view bytes, const std::string& place, Trace& trace);
/// A Chrome trace of torch.profiler (Kineto): record_param_comms and nccl kernels.
void import_kineto(ByteStream& in, Trace& trace);
/// NCCL's own log (NCCL_DEBUG=INFO, NCCL_DEBUG_SUBSYS=INIT,COLL) of one or several ranks.
void import_nccl_log(ByteStream& in, Trace& trace);
/// A Chakra execution trace: protobuf, or the JSON that its feeder reads.
void import_chakra(ByteStream& in, Trace& trace);
void import_chakra_json(std::string_view text, const std::string& place, Trace& trace);

}  // namespace medley::trace
