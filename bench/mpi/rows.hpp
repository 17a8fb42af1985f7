// The output of the programs in this folder: the JSON of `medley bench`, one row per operation and size.
// Written by hand so that the programs need only a compiler and an MPI.
#pragma once

#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include "options.hpp"

namespace medley::bench {

struct Row {
  Op op;
  std::size_t bytes;
  Measured measured;
};

/// Quotes for JSON: library versions hold line breaks and the odd quote.
inline std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + '"';
}

inline void write_row(std::FILE* file, const Row& row, const std::string& backend, int ranks) {
  const tune::Summary summary = tune::summarize(row.measured.samples_us);
  const double algbw = static_cast<double>(row.bytes) / summary.median / 1e3;  // GB/s
  std::fprintf(file,
               "{\"op\": \"%s\", \"backend\": %s, \"algorithm\": \"default\", \"memory\": \"host\", "
               "\"dtype\": \"f32\", "
               "\"bytes\": %zu, \"median_us\": %.4f, \"mad_us\": %.4f, \"p99_us\": %.4f, \"algbw\": %.6f, "
               "\"busbw\": %.6f, \"iterations\": %zu, \"batch\": %d, \"late_us\": %.4f}",
               name_of(row.op), quoted(backend).c_str(), row.bytes, summary.median, summary.mad, summary.p99, algbw,
               algbw * tune::bus_factor(row.op, ranks), row.measured.samples_us.size(), row.measured.batch,
               row.measured.late_us);
}

inline void write_json(const std::string& path, const std::string& backend, const std::string& version, int ranks,
                       const std::vector<Row>& rows) {
  std::FILE* file = path == "-" ? stdout : std::fopen(path.c_str(), "w");
  if (!file) throw std::runtime_error("cannot write " + path);
  std::fprintf(file, "{\"ranks\": %d, \"hosts\": 1, \"version\": %s, \"rows\": [", ranks, quoted(version).c_str());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::fprintf(file, i ? ",\n  " : "\n  ");
    write_row(file, rows[i], backend, ranks);
  }
  std::fprintf(file, "\n]}\n");
  if (file != stdout) std::fclose(file);
}

}  // namespace medley::bench
