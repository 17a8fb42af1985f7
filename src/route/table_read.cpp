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
#include "route/table.hpp"

namespace medley::route {
namespace {

using nlohmann::json;

// A table of every operation, size and shape of a large cluster has some ten thousand cells; these limits are far above.
constexpr std::size_t most_bytes = std::size_t{64} << 20;
constexpr std::size_t most_routes = 1000;
constexpr std::size_t longest_name = 200;

constexpr core::FileFormat file_format{"route table", 1, table_version, "measure again with medley tune"};

/// A value with its path, such as cells[3].routes[0].median_us.
struct Place {
  const std::string& table;
  std::string path;
  const json& value;

  [[noreturn]] void refuse(const std::string& why) const {
    throw Error(ErrorKind::invalid, fmt::format("route table {}: {}{}", table, path.empty() ? "" : path + ": ", why));
  }
  std::string shown() const {
    const std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
    return text.size() > 60 ? text.substr(0, 60) + "…" : text;
  }
  Place at(const char* key) const {
    if (!value.is_object()) refuse("it is not an object");
    const auto found = value.find(key);
    if (found == value.end()) refuse(fmt::format("\"{}\" is missing", key));
    return {table, path.empty() ? key : path + "." + key, *found};
  }
  Place at(std::size_t index) const { return {table, fmt::format("{}[{}]", path, index), value[index]}; }
  std::size_t length() const {
    if (!value.is_array()) refuse("it is not a list");
    return value.size();
  }
  std::string words() const {
    if (!value.is_string()) refuse(fmt::format("{} is not a text", shown()));
    const auto& text = value.get_ref<const std::string&>();
    if (text.size() > longest_name) refuse(fmt::format("it is longer than {} characters", longest_name));
    return text;
  }
  std::string named() const {
    const std::string text = words();
    const auto plain = [](char c) { return c > ' ' && c != '/' && c != ';' && c != '"' && c < 127; };
    if (text.empty() || !std::all_of(text.begin(), text.end(), plain)) refuse(fmt::format("{} is not a name", shown()));
    return text;
  }
  std::int64_t whole(std::int64_t from, std::int64_t to) const {
    if (!value.is_number_integer()) refuse(fmt::format("{} is not a whole number", shown()));
    const bool huge = value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX);
    const std::int64_t number = huge ? INT64_MAX : value.get<std::int64_t>();
    if (huge || number < from || number > to) refuse(fmt::format("{} is not between {} and {}", shown(), from, to));
    return number;
  }
  double real(double from, double to) const {
    const double number = value.is_number() ? value.get<double>() : NAN;
    if (!(number >= from && number <= to)) refuse(fmt::format("{} is not a number between {} and {}", shown(), from, to));
    return number;
  }
};

// Up to eleven days; down to the smallest number that is not written as zero.
constexpr double longest_us = 1e12, shortest_us = 0.001;

Machine read_machine(const Place& place) {
  Machine machine;
  machine.cpu = place.at("cpu").words();
  machine.cores = static_cast<int>(place.at("cores").whole(1, 1 << 20));
  machine.gpu = place.at("gpu").words();
  machine.fabric = place.at("fabric").words();
  const Place libraries = place.at("libraries");
  if (!libraries.value.is_object()) libraries.refuse("it is not an object");
  for (const auto& [backend, version] : libraries.value.items()) {
    machine.libraries[backend] = Place{place.table, libraries.path + "." + backend, version}.words();
  }
  return machine;
}

Timing read_timing(const Place& place) {
  Timing timing;
  timing.route = {place.at("backend").named(), place.at("algorithm").named()};
  timing.median_us = place.at("median_us").real(shortest_us, longest_us);
  timing.low_us = place.at("low_us").real(0, timing.median_us);
  timing.high_us = place.at("high_us").real(timing.median_us, longest_us);
  timing.samples = place.at("samples").whole(1, INT64_MAX);
  return timing;
}

Key read_key(const Place& place) {
  Key key;
  const Place op = place.at("op");
  const auto found = parse_op(op.words());
  if (!found || name(*found) != op.words() || *found == Op::recv) op.refuse(fmt::format("{} is not an operation", op.shown()));
  key.op = *found;
  key.bytes = place.at("bytes").whole(0, std::int64_t{1} << 50);
  key.shape.hosts = static_cast<int>(place.at("hosts").whole(1, 1 << 24));
  key.shape.ranks_per_host = static_cast<int>(place.at("ranks_per_host").whole(1, 1 << 16));
  const Place memory = place.at("memory");
  if (memory.words() != "host" && memory.words() != "cuda") memory.refuse(fmt::format("{} is neither host nor cuda", memory.shown()));
  key.memory = memory.words() == "cuda" ? Memory::cuda : Memory::host;
  const Place dtype = place.at("dtype");
  for (int i = 0;; ++i) {
    if (i == dtype_class_count) dtype.refuse(fmt::format("{} is none of any, float, half and integer", dtype.shown()));
    key.dtype = static_cast<DTypeClass>(i);
    if (dtype.words() == name(key.dtype)) break;
  }
  if (reduces(key.op) == (key.dtype == DTypeClass::any)) {
    dtype.refuse(fmt::format("{} does not go with {}: reductions name a class, other operations have any", dtype.shown(), name(key.op)));
  }
  return key;
}

Cell read_cell(const Place& place) {
  Cell cell;
  cell.key = read_key(place);
  cell.confidence = place.at("confidence").real(0, 1);
  const Place routes = place.at("routes");
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

}  // namespace

Table Table::parse(std::string_view text, const std::string& name) {
  json whole;
  try {
    whole = json::parse(text);
  } catch (const json::exception& error) {
    const std::string what = error.what();   // "[json.exception.parse_error.101] parse error at line 3, column 1: …"
    const std::size_t at = what.find("] ");
    throw Error(ErrorKind::invalid, fmt::format("route table {} is not JSON: {}", name, at == what.npos ? what : what.substr(at + 2)));
  }
  if (core::json_depth(text) > core::deepest_json)
    throw Error(ErrorKind::invalid, fmt::format("route table {} nests more than {} brackets; a table does not", name, core::deepest_json));
  const Place top{name, "", whole};
  core::check_format(file_format, name, top.at("medley_routes").whole(0, INT64_MAX));
  Table table;
  table.machine = read_machine(top.at("machine"));
  const Place cells = top.at("cells");
  for (std::size_t i = 0, count = cells.length(); i < count; ++i) {
    table.cells_.push_back(read_cell(cells.at(i)));
  }
  table.sort();
  for (std::size_t i = 1; i < table.cells_.size(); ++i) {
    const Key& key = table.cells_[i].key;
    if (key == table.cells_[i - 1].key) {
      cells.refuse(fmt::format("{} of {} bytes on {} is there twice", medley::name(key.op), key.bytes, route::text(key.shape)));
    }
  }
  return table;
}

Table Table::load(const std::filesystem::path& file) {
  std::error_code problem;
  if (!std::filesystem::is_regular_file(file, problem)) {
    throw Error(ErrorKind::invalid, fmt::format("route table {} {}", file.string(),
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
