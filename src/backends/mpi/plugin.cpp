// The plugin of one variant: decides whether this process uses its MPI, and only then loads it.
#include "backends/mpi/plugin.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstring>
#include <filesystem>

#include "backends/mpi/which_mpi.hpp"

namespace medley::mpi {
namespace {

constexpr Flavour own = std::string_view(MEDLEY_MPI_VARIANT) == "openmpi" ? Flavour::open_mpi : Flavour::mpich;

/// The body of a variant is beside its plugin.
std::string body_of(std::string_view variant) {
  Dl_info self{};
  if (dladdr(reinterpret_cast<const void*>(&medley_backend), &self) == 0 || !self.dli_fname) return {};
  return std::filesystem::path(self.dli_fname).parent_path() / fmt::format("libmedley_mpi-{}.so", variant);
}

/// Loads the body, and with it the MPI, for good. On failure `reason` says why.
CreateFunction* load(std::string_view variant, std::string& reason) {
  void* body = dlopen(body_of(variant).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!body) {
    const char* why = dlerror();
    reason = fmt::format("{} cannot be loaded, is it installed? {}", name(own), why ? why : "");
    return nullptr;
  }
  auto* create = reinterpret_cast<CreateFunction*>(dlsym(body, create_symbol));
  if (!create) reason = fmt::format("{} does not belong to this Medley; build it again", body_of(variant));
  return create;
}

std::string unavailable() {
  const auto evidence = find_mpi_of_process();
  if (evidence && evidence->flavour != own)
    return fmt::format("{}, and one process uses one MPI only, so the build for {} is not for it", evidence->because,
                       name(own));
  if (!evidence && started_as_one_of_several()) return how_to_start;
  std::string reason;
  // A single process may use either; the choice must not depend on the order of the files.
  if (!evidence && own != Flavour::open_mpi && load("openmpi", reason))
    return "Open MPI is preferred without a launcher";
  reason.clear();
  load(MEDLEY_MPI_VARIANT, reason);
  return reason;
}

std::unique_ptr<Backend> create(const BackendParams& params) {
  const auto evidence = find_mpi_of_process();
  const bool in_a_job = evidence && evidence->has_ranks;
  if (!in_a_job && params.size > 1) throw Error(ErrorKind::unavailable, how_to_start);
  std::string reason;
  CreateFunction* make = load(MEDLEY_MPI_VARIANT, reason);
  if (!make) throw Error(ErrorKind::unavailable, reason);
  return make(params, in_a_job);
}

}  // namespace
}  // namespace medley::mpi

extern "C" const medley::BackendPlugin* medley_backend() {
  static const medley::BackendPlugin plugin{
      .name = "mpi",
      .unavailable = medley::mpi::unavailable,
      .create = medley::mpi::create,
  };
  return &plugin;
}
