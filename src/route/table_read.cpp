// Reading a table: every field is validated, and errors name the field.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <medley/error.hpp>
#include <nlohmann/json.hpp>

#include "base/format_version.hpp"
#include "base/json_depth.hpp"
#include "route/json_field.hpp"
#include "route/table.hpp"

namespace medley::route {
namespace {

// A table of every operation, size and shape of a large cluster has some ten thousand cells; these limits are far
// above.
constexpr std::size_t most_bytes = std::size_t{64} << 20;

constexpr core::FileFormat file_format{"route table", 1, table_version, "measure again with medley tune"};

/// Of "[json.exception.parse_error.101] parse error at line 3, column 1: …; last read: …" what is between the brackets and
/// the bytes read, which need not be UTF-8.
std::string reason_of(const json::exception& error) {
  const std::string what = error.what();
  const std::size_t from = what.find("] "), to = what.find("; last read:");
  return from == what.npos ? what : what.substr(from + 2, to == what.npos ? to : to - from - 2);
}

Machine read_machine(const JsonField& field) {
  Machine machine;
  machine.cpu = field.at("cpu").words();
  machine.cores = static_cast<int>(field.at("cores").whole(1, 1 << 20));
  machine.gpu = field.at("gpu").words();
  machine.fabric = field.at("fabric").words();
  const JsonField libraries = field.at("libraries");
  if (!libraries.value.is_object()) libraries.refuse("it is not an object");
  for (const auto& [backend, version] : libraries.value.items()) {
    machine.libraries[backend] = JsonField{field.table, libraries.path + "." + backend, version}.words();
  }
  return machine;
}

Timing read_timing(const JsonField& field) {
  Timing timing;
  timing.route = {field.at("backend").named(), field.at("algorithm").named()};
  timing.median_us = field.at("median_us").real(shortest_us, longest_us);
  timing.low_us = field.at("low_us").real(0, timing.median_us);
  timing.high_us = field.at("high_us").real(timing.median_us, longest_us);
  timing.samples = field.at("samples").whole(1, INT64_MAX);
  return timing;
}

Key read_key(const JsonField& field) {
  Key key;
  key.op = read_op(field.at("op"));
  key.bytes = field.at("bytes").whole(0, std::int64_t{1} << 50);
  key.shape = read_shape(field);
  key.memory = read_memory(field.at("memory"));
  key.dtype = read_dtype(field, key.op);
  return key;
}

Cell read_cell(const JsonField& field) {
  Cell cell;
  cell.key = read_key(field);
  cell.confidence = field.at("confidence").real(0, 1);
  const JsonField routes = field.at("routes");
  const std::size_t count = routes.length();
  if (count == 0 || count > most_routes) routes.refuse(fmt::format("it has {} routes", count));
  for (std::size_t i = 0; i < count; ++i) {
    const Timing timing = read_timing(routes.at(i));
    if (cell.find(timing.route)) {
      routes.at(i).refuse(fmt::format("{}/{} is there twice", timing.route.backend, timing.route.algorithm));
    }
    cell.routes.push_back(timing);
  }
  return cell;
}

FusionRow read_fusion(const JsonField& field) {
  FusionRow row;
  row.shape = read_shape(field);
  row.memory = read_memory(field.at("memory"));
  if (field.value.contains("backend")) row.backend = field.at("backend").named();
  const JsonField sizes = field.at("sizes");
  const std::size_t count = sizes.length();
  if (count == 0 || count > most_routes) sizes.refuse(fmt::format("it has {} sizes", count));
  for (std::size_t i = 0; i < count; ++i) {
    const JsonField size = sizes.at(i);
    row.sizes.push_back({.bytes = size.at("bytes").whole(1, std::int64_t{1} << 50),
                         .separate_us = size.at("separate_us").real(shortest_us, longest_us),
                         .fused_us = size.at("fused_us").real(shortest_us, longest_us)});
  }
  return row;
}

MixingCost read_mixing(const JsonField& field) {
  return {.memory = read_memory(field.at("memory")),
          .shape = read_shape(field),
          .library = field.at("library").named(),
          .us = field.at("us").real(0, longest_us)};
}

}  // namespace

Op read_op(const JsonField& op) {
  const auto found = parse_op(op.words());
  if (!found || name(*found) != op.words() || *found == Op::recv)
    op.refuse(fmt::format("{} is not an operation", op.shown()));
  return *found;
}

Memory read_memory(const JsonField& memory) {
  if (memory.words() != "host" && memory.words() != "cuda")
    memory.refuse(fmt::format("{} is neither host nor cuda", memory.shown()));
  return memory.words() == "cuda" ? Memory::cuda : Memory::host;
}

Shape read_shape(const JsonField& field) {
  const std::int64_t hosts = field.at("hosts").whole(1, most_ranks);
  // Readers of a table list its ranks one by one.
  return {static_cast<int>(hosts), static_cast<int>(field.at("ranks_per_host").whole(1, most_ranks / hosts))};
}

DTypeClass read_dtype(const JsonField& field, Op op) {
  const JsonField dtype = field.at("dtype");
  DTypeClass found{};
  for (int i = 0;; ++i) {
    if (i == dtype_class_count) dtype.refuse(fmt::format("{} is none of any, float, half and integer", dtype.shown()));
    found = static_cast<DTypeClass>(i);
    if (dtype.words() == name(found)) break;
  }
  if (reduces(op) == (found == DTypeClass::any)) {
    dtype.refuse(fmt::format("{} does not go with {}: reductions name a class, other operations have any",
                             dtype.shown(), name(op)));
  }
  return found;
}

Table Table::parse(std::string_view text, const std::string& name) {
  json whole;
  try {
    whole = json::parse(text);
  } catch (const json::exception& error) {
    throw Error(ErrorKind::invalid, fmt::format("route table {} is not JSON: {}", name, reason_of(error)));
  }
  if (core::json_depth(text) > core::deepest_json)
    throw Error(ErrorKind::invalid,
                fmt::format("route table {} nests more than {} brackets; a table does not", name, core::deepest_json));
  const JsonField top{name, "", whole};
  core::check_format(file_format, name, top.at("medley_routes").whole(0, INT64_MAX));
  Table table;
  if (whole.contains("fusion")) {  // from version 2 on, where it was measured
    const JsonField rows = top.at("fusion");
    for (std::size_t i = 0, count = rows.length(); i < count; ++i) table.put(read_fusion(rows.at(i)));
    if (table.fusion_.size() != rows.length()) rows.refuse("a shape is there twice for one backend");
  }
  if (whole.contains("mixing")) {
    const JsonField costs = top.at("mixing");
    for (std::size_t i = 0, count = costs.length(); i < count; ++i) table.put(read_mixing(costs.at(i)));
    if (table.mixing_.size() != costs.length()) costs.refuse("a library is there twice");
  }
  table.machine = read_machine(top.at("machine"));
  if (whole.contains("tuned_for")) table.step = read_tuned_step(top.at("tuned_for"));
  const JsonField cells = top.at("cells");
  for (std::size_t i = 0, count = cells.length(); i < count; ++i) {
    table.cells_.push_back(read_cell(cells.at(i)));
  }
  table.sort();
  for (std::size_t i = 1; i < table.cells_.size(); ++i) {
    const Key& key = table.cells_[i].key;
    if (key == table.cells_[i - 1].key) {
      cells.refuse(
          fmt::format("{} of {} bytes on {} is there twice", medley::name(key.op), key.bytes, route::text(key.shape)));
    }
  }
  return table;
}

Table Table::load(const std::filesystem::path& file) {
  std::error_code problem;
  if (!std::filesystem::is_regular_file(file, problem)) {
    throw Error(ErrorKind::invalid,
                fmt::format("route table {} {}", file.string(),
                            std::filesystem::exists(file, problem) ? "is not a file" : "does not exist"));
  }
  if (const auto bytes = std::filesystem::file_size(file, problem); problem || bytes > most_bytes) {
    throw Error(ErrorKind::invalid, fmt::format("route table {} is larger than {} bytes", file.string(), most_bytes));
  }
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw Error(ErrorKind::invalid, fmt::format("route table {} cannot be read", file.string()));
  return parse(std::string(std::istreambuf_iterator<char>(stream), {}), file.string());
}

}  // namespace medley::route
