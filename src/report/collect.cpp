#include "report/collect.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <medley/error.hpp>

#include "base/json_depth.hpp"
#include "report/formats.hpp"
#include "report/read_trace.hpp"
#include "trace/byte_stream.hpp"
#include "trace/import.hpp"
#include "trace/record_reader.hpp"

namespace medley::report {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t most_bytes = std::uintmax_t{64} << 20;
constexpr std::size_t most_files = 1000, most_lines = 100;
constexpr int deepest_folder = 4;

/// Keys of the files that other tools write; src/trace/import.cpp reads them.
constexpr const char* trace_keys[] = {"traceEvents", "schemaVersion", "entries",
                                      "pg_config",   "pg_status",     "workload_graph"};

bool is_trace_json(const Json& file) {
  if (file.is_array()) return !file.empty() && file[0].is_object() && file[0].contains("ph");
  return file.is_object() &&
         std::any_of(std::begin(trace_keys), std::end(trace_keys), [&](const char* key) { return file.contains(key); });
}

bool holds_records(const fs::path& folder) {
  std::error_code ignored;
  return std::any_of(fs::directory_iterator(folder, ignored), fs::directory_iterator(),
                     [](const fs::directory_entry& entry) {
                       std::error_code error;
                       return entry.path().extension() == ".trace" && entry.is_regular_file(error);
                     });
}

class Collector {
 public:
  Collector(fs::path root, fs::path ignored) : root_(std::move(root)), ignored_(std::move(ignored)) {
    for (const Format& format : formats())
      if (!format.list.empty()) run_[std::string(format.list)] = Json::array();
    for (const char* list : {"traces", "skipped", "failed", "files"}) run_[list] = Json::array();
  }

  Json run() {
    visit_folder(root_, 0);
    if (left_out_ > 0)
      note("…", "", "not used", fmt::format("{} more files: the report reads {} at most", left_out_, most_files));
    return std::move(run_);
  }

 private:
  void visit_folder(const fs::path& folder, int depth) {
    std::error_code error;
    std::vector<fs::path> paths;
    for (const auto& entry : fs::directory_iterator(folder, error)) paths.push_back(entry.path());
    if (error) return note(name_of(folder), "", "refused", "the folder cannot be read: " + error.message());
    std::sort(paths.begin(), paths.end());
    for (const fs::path& path : paths) {
      std::error_code ignored;
      if (!ignored_.empty() && fs::equivalent(path, ignored_, ignored)) continue;
      const fs::file_status status = fs::symlink_status(path, ignored);
      if (fs::is_directory(status)) {
        if (holds_records(path)) {
          add_trace(path);
        } else if (depth < deepest_folder) {
          visit_folder(path, depth + 1);
        } else {
          note(name_of(path), "folder", "not used", fmt::format("folders deeper than {} are not read", deepest_folder));
        }
      } else if (++files_ > most_files) {
        ++left_out_;
      } else {
        visit_file(path);
      }
    }
  }

  void visit_file(const fs::path& path) {
    std::error_code error;
    if (!fs::is_regular_file(path, error)) return note(name_of(path), "", "not used", "it is not a plain file");
    if (path.parent_path() == root_ && (path.filename() == "skipped.txt" || path.filename() == "failed.txt"))
      return add_lines(path, path.stem().native());
    try {
      add_file(path);
    } catch (const Json::parse_error& problem) {
      note(name_of(path), kind_, "refused", fmt::format("it is not JSON from byte {} on", problem.byte));
    } catch (const std::exception& problem) {
      note(name_of(path), kind_, "refused", problem.what());
    }
  }

  void add_file(const fs::path& path) {
    kind_.clear();
    if (trace::is_record_file(path)) return add_trace(path);
    const std::string head(trace::ByteStream(path).head());
    const std::size_t first = head.find_first_not_of(" \t\r\n");
    const bool json = first != std::string::npos && (head[first] == '{' || head[first] == '[') &&
                      path.extension() != ".gz" && path.extension() != ".zst";
    if (!json) {
      if (trace::looks_importable(path)) return add_trace(path);
      return note(name_of(path), "", "not used", "it is neither JSON that Medley writes nor a trace");
    }
    if (fs::file_size(path) > most_bytes) {
      const bool trace = std::any_of(std::begin(trace_keys), std::end(trace_keys),
                                     [&](const char* key) { return head.find(key) != std::string::npos; });
      if (trace) return add_trace(path);
      throw Error(ErrorKind::invalid,
                  fmt::format("it has more than {} MiB, which no file of Medley's has", most_bytes >> 20));
    }
    const std::string text = trace::ByteStream(path).rest(most_bytes);
    if (core::json_depth(text) > core::deepest_json)
      throw Error(ErrorKind::invalid,
                  fmt::format("its brackets nest more than {} deep; no file of Medley's does", core::deepest_json));
    add_json(path, Json::parse(text));
  }

  void add_json(const fs::path& path, const Json& file) {
    if (const Format* format = format_of(file)) {
      kind_ = format->written;
      if (!format->read) return note(name_of(path), kind_, "not used", std::string(format->why));
      Json item = {{"file", name_of(path)}};
      item.update(format->read(Node(file)));
      run_[std::string(format->list)].push_back(std::move(item));
      return note(name_of(path), kind_, "used", "");
    }
    if (is_trace_json(file)) return add_trace(path);
    note(name_of(path), "JSON", "not used", "it is not a file that the report knows");
  }

  void add_trace(const fs::path& path) {
    kind_ = "trace";
    try {
      Json item = {{"file", name_of(path)}};
      item.update(read_trace(path.native()));
      run_["traces"].push_back(std::move(item));
      note(name_of(path), kind_, "used", "");
    } catch (const std::exception& problem) {
      note(name_of(path), kind_, "refused", problem.what());
    }
  }

  void add_lines(const fs::path& path, const std::string& list) {
    constexpr std::string_view mark = "-- skipped: ";
    std::ifstream file(path);
    for (std::string line; std::getline(file, line) && run_[list].size() < most_lines;) {
      if (line.starts_with(mark)) line.erase(0, mark.size());
      if (!line.empty()) run_[list].push_back(line.substr(0, 1000));
    }
    note(name_of(path), "./run", "used", "");
  }

  void note(const std::string& file, const std::string& kind, const std::string& status, const std::string& why) {
    run_["files"].push_back({{"file", file}, {"kind", kind}, {"status", status}, {"why", why}});
  }
  std::string name_of(const fs::path& path) const { return path.lexically_relative(root_).native(); }

  fs::path root_, ignored_;
  Json run_;
  std::string kind_;  ///< the recognised format of the current file
  std::size_t files_ = 0, left_out_ = 0;
};

}  // namespace

Json collect(const fs::path& folder, const fs::path& ignored) {
  std::error_code error;
  if (!fs::is_directory(folder, error))
    throw Error(ErrorKind::invalid, fmt::format("{}: there is no such folder", folder.native()));
  return Collector(folder, ignored).run();
}

}  // namespace medley::report
