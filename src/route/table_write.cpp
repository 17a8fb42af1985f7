// Writing a table as text and to a file.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <medley/error.hpp>
#include <nlohmann/json.hpp>

#include "base/write_file.hpp"
#include "route/table.hpp"
#include "route/tuned_step_text.hpp"

namespace medley::route {
namespace {

std::string in_quotes(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string text_of(const Machine& machine) {
  std::string libraries;
  for (const auto& [backend, version] : machine.libraries) {
    libraries += fmt::format("{}{}: {}", libraries.empty() ? "" : ", ", in_quotes(backend), in_quotes(version));
  }
  return fmt::format("{{\"cpu\": {}, \"cores\": {}, \"gpu\": {}, \"fabric\": {},\n    \"libraries\": {{{}}}}}",
                     in_quotes(machine.cpu), machine.cores, in_quotes(machine.gpu), in_quotes(machine.fabric),
                     libraries);
}

/// As it is written, so that a table which was read writes the same text again.
double rounded(double us) {
  const std::string text = fmt::format("{:.3f}", us);
  std::from_chars(text.data(), text.data() + text.size(), us);  // by no locale
  return us;
}

std::string text_of(const Cell& cell) {
  const Key& key = cell.key;
  std::string text = fmt::format(
      "    {{\"op\": \"{}\", \"bytes\": {}, \"hosts\": {}, \"ranks_per_host\": {}, \"memory\": \"{}\", \"dtype\": \"{}\", "
      "\"confidence\": {:.3f}, \"routes\": [",
      name(key.op), key.bytes, key.shape.hosts, key.shape.ranks_per_host, name(key.memory), name(key.dtype),
      cell.confidence);
  const char* between = "\n";
  for (const Timing& timing : cell.routes) {
    text += fmt::format(
        "{}      {{\"backend\": {}, \"algorithm\": {}, \"median_us\": {:.3f}, \"low_us\": {:.3f}, "
        "\"high_us\": {:.3f}, \"samples\": {}, \"slower\": {:.3f}}}",
        between, in_quotes(timing.route.backend), in_quotes(timing.route.algorithm), timing.median_us, timing.low_us,
        timing.high_us, timing.samples, rounded(timing.median_us) / rounded(cell.routes.front().median_us));
    between = ",\n";
  }
  return text + "]}";
}

std::string text_of(const FusionRow& row) {
  const std::string backend = row.backend.empty() ? std::string{} : fmt::format("\"backend\": \"{}\", ", row.backend);
  std::string text = fmt::format("    {{\"hosts\": {}, \"ranks_per_host\": {}, \"memory\": \"{}\", {}\"sizes\": [",
                                 row.shape.hosts, row.shape.ranks_per_host, name(row.memory), backend);
  const char* between = "\n";
  for (const FusionTiming& timing : row.sizes) {
    text += fmt::format("{}      {{\"bytes\": {}, \"separate_us\": {:.3f}, \"fused_us\": {:.3f}}}", between,
                        timing.bytes, timing.separate_us, timing.fused_us);
    between = ",\n";
  }
  return text + "]}";
}

[[noreturn]] void fail(const std::filesystem::path& file) { core::refuse_to_write(file, errno); }

void write_all(int descriptor, std::string_view text, const std::filesystem::path& file) {
  while (!text.empty()) {
    const ssize_t wrote = ::write(descriptor, text.data(), text.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) fail(file);
    text.remove_prefix(static_cast<std::size_t>(wrote));
  }
}

/// Of a file that is to replace this one once it is complete.
std::string new_name(const std::filesystem::path& file) {
  return fmt::format("{}.{}.{:x}.new", file.string(), getpid(),
                     std::chrono::steady_clock::now().time_since_epoch().count());
}

}  // namespace

void check_can_save(const std::filesystem::path& file) {
  std::error_code none;
  if (!file.has_filename() || std::filesystem::is_directory(file, none)) core::refuse_to_write(file, EISDIR);
  // save() makes the folders that are missing.
  std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
  while (!std::filesystem::exists(folder, none) && folder.has_relative_path())
    folder = folder.has_parent_path() ? folder.parent_path() : ".";
  if (const int error = core::try_to_create(folder / new_name(file.filename()))) core::refuse_to_write(file, error);
}

std::string Table::text() const {
  // Without those, format 1 says it all
  const int version = step || !fusion_.empty() || !mixing_.empty() ? table_version : 1;
  std::string text = fmt::format("{{\n  \"medley_routes\": {},\n  \"machine\": {},\n{}  \"cells\": [", version,
                                 text_of(machine), step ? text_of(*step) : "");
  const char* between = "\n";
  for (const Cell& cell : cells_) {
    text += between + text_of(cell);
    between = ",\n";
  }
  text += "\n  ]";
  between = ",\n  \"fusion\": [\n";
  for (const FusionRow& row : fusion_) {
    text += between + text_of(row);
    between = ",\n";
  }
  if (!fusion_.empty()) text += "\n  ]";
  between = ",\n  \"mixing\": [\n";
  for (const MixingCost& cost : mixing_) {
    text += fmt::format(
        "{}    {{\"memory\": \"{}\", \"hosts\": {}, \"ranks_per_host\": {}, \"library\": {}, \"us\": {:.3f}}}", between,
        name(cost.memory), cost.shape.hosts, cost.shape.ranks_per_host, in_quotes(cost.library), cost.us);
    between = ",\n";
  }
  return text + (mixing_.empty() ? "\n}\n" : "\n  ]\n}\n");
}

void Table::save(const std::filesystem::path& file) const {
  std::error_code ignored;
  if (file.has_parent_path()) std::filesystem::create_directories(file.parent_path(), ignored);
  const std::string beside = new_name(file);
  const int descriptor = ::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (descriptor < 0) fail(file);
  try {
    write_all(descriptor, text(), file);
    // Otherwise a crash of the host could leave an empty file under the new name
    if (fsync(descriptor) != 0) fail(file);
  } catch (...) {
    ::close(descriptor);
    ::unlink(beside.c_str());
    throw;
  }
  ::close(descriptor);
  if (::rename(beside.c_str(), file.c_str()) != 0) {
    ::unlink(beside.c_str());
    fail(file);
  }
}

}  // namespace medley::route
