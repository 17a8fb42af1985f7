#include "backends/mpi/which_mpi.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include <cstdlib>
#include <cstring>
#include <vector>

namespace medley::mpi {
namespace {

bool set(const char* variable) {
  const char* text = std::getenv(variable);
  return text && *text;
}

/// A symbol that only Open MPI and its descendants have.
Flavour flavour_of(void* handle) { return dlsym(handle, "ompi_mpi_comm_world") ? Flavour::open_mpi : Flavour::mpich; }

int note_mpi(dl_phdr_info* object, std::size_t, void* found) {
  const char* file = std::strrchr(object->dlpi_name, '/');
  file = file ? file + 1 : object->dlpi_name;
  // libmpi.so.40 is Open MPI's, libmpi.so.12 MPICH's, which Debian calls libmpich.so.12.
  if (std::strncmp(file, "libmpi.so", 9) == 0 || std::strncmp(file, "libmpich.so", 11) == 0)
    static_cast<std::vector<std::string>*>(found)->emplace_back(object->dlpi_name);
  return 0;
}

/// An MPI in this process that is initialised, wherever its symbols are visible (Python loads mpi4py's library with
/// local symbols).
std::optional<Flavour> initialised_mpi() {
  std::vector<std::string> files;
  dl_iterate_phdr(note_mpi, &files);
  for (const std::string& file : files) {
    void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_NOLOAD);
    if (!handle) continue;
    const auto initialised = reinterpret_cast<int (*)(int*)>(dlsym(handle, "MPI_Initialized"));
    int yes = 0;
    const bool asked = initialised && initialised(&yes) == 0;
    const Flavour flavour = flavour_of(handle);
    dlclose(handle);
    if (asked && yes) return flavour;
  }
  return std::nullopt;
}

std::optional<Flavour> launcher() {
  if (set("OMPI_COMM_WORLD_SIZE")) return Flavour::open_mpi;
  for (const char* variable : {"PMI_RANK", "PMI_SIZE", "PMI_FD", "PMI_PORT"}) {
    if (set(variable)) return Flavour::mpich;
  }
  if (set("PMIX_RANK")) return Flavour::open_mpi;  // srun --mpi=pmix
  return std::nullopt;
}

}  // namespace

const char* name(Flavour flavour) { return flavour == Flavour::open_mpi ? "Open MPI" : "MPICH"; }

std::optional<Evidence> find_mpi_of_process() {
  const auto started_by = launcher();
  if (const auto running = initialised_mpi())
    return Evidence{*running, fmt::format("this process has initialised {}", name(*running)), true};
  // What the program is linked with would also be found by our own calls.
  if (dlsym(RTLD_DEFAULT, "MPI_Init")) {
    const Flavour linked = flavour_of(RTLD_DEFAULT);
    return Evidence{linked, fmt::format("this program is linked with {}", name(linked)), started_by == linked};
  }
  if (const char* chosen = std::getenv("MEDLEY_MPI"); chosen && *chosen) {
    const Flavour flavour = std::strcmp(chosen, "mpich") == 0 ? Flavour::mpich : Flavour::open_mpi;
    return Evidence{flavour, fmt::format("MEDLEY_MPI={} chooses {}", chosen, name(flavour)), started_by.has_value()};
  }
  if (started_by)
    return Evidence{*started_by, fmt::format("{}'s launcher started this process", name(*started_by)), true};
  return std::nullopt;
}

bool started_as_one_of_several() {
  for (const char* variable : {"MEDLEY_WORLD_SIZE", "WORLD_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    const char* text = std::getenv(variable);
    if (text && std::atoi(text) > 1) return true;
  }
  return false;
}

}  // namespace medley::mpi
