#include "tune/check_request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <medley/error.hpp>

#include "route/table.hpp"

namespace medley::tune {
namespace {

/// A run that resumes compares the libraries' versions also, which only a context knows.
void check_resumable(const std::filesystem::path& file) {
  std::error_code none;
  if (!std::filesystem::exists(file, none)) return;
  const std::string why = route::misfit(route::Table::load(file).machine, route::this_machine());
  if (why.empty()) return;
  throw Error(ErrorKind::invalid, fmt::format("{} is the table of another machine: {}; name another file or remove it",
                                              file.string(), why));
}

}  // namespace

void check(const BenchRequest& request) {
  if (!request.table.empty()) static_cast<void>(route::Table::load(request.table));
}

void check(const TuneRequest& request) {
  const std::vector<std::string>& backends = request.options.backends;
  if (std::find(backends.begin(), backends.end(), "auto") != backends.end())
    throw Error(ErrorKind::invalid, "tune measures libraries, and auto chooses among them: leave auto out");
  const std::filesystem::path file = table_file(request);
  check_resumable(file);
  route::check_can_save(file);
}

}  // namespace medley::tune
