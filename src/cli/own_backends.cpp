#include "cli/own_backends.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <cstdlib>
#include <medley/error.hpp>
#include <string_view>
#include <vector>

#include "cli/sizes.hpp"
#include "comm/backend_loader.hpp"
#include "route/pair_name.hpp"

namespace medley::cli {
namespace {

bool environment_lists_backends() {
  const char* text = std::getenv("MEDLEY_BACKENDS");
  return text && *text;
}

std::string all_that_work() {
  std::vector<std::string> names;
  for (const auto& known : core::known_backends())
    if (known->unavailable().empty()) names.push_back(known->name());
  return fmt::format("{}", fmt::join(names, ","));
}

/// Empty where mpi is not left out, or could not be used in any case.
std::string why_left_out(core::KnownBackend& mpi, const std::optional<Place>& place) {
  if (place) return place->rank == 0 && place->source != Place::Source::medley ? mpi.unavailable() : "";
  if (!mpi.unavailable().empty()) return "";
  return fmt::format("these ranks are not started by MPI; add --backends {}", all_that_work());
}

}  // namespace

void check_backends_here(const std::string& listed) {
  for (const std::string& name : parse_list(listed)) {
    for (const std::string_view library : route::halves_of(name)) {
      core::KnownBackend* const known = core::find_backend(library);  // null: auto
      if (const std::string why = known ? known->unavailable() : ""; !why.empty())
        throw Error(ErrorKind::invalid, fmt::format("--backends {}: {}", name, why));
    }
  }
}

void note_left_out(const std::string& listed, const std::optional<Place>& place) {
  core::KnownBackend* const mpi = core::find_backend("mpi");
  if (!mpi || !listed.empty() || environment_lists_backends()) return;
  if (const std::string why = why_left_out(*mpi, place); !why.empty())
    fmt::print(stderr, "medley: mpi left out: {}\n", why);
}

}  // namespace medley::cli
