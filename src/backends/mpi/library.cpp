#include "backends/mpi/library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>

#include "backends/mpi/errors.hpp"
#include "backends/mpi/ucx_peers.hpp"

namespace medley::mpi {
namespace {

// MPI's counts are ints. A round number below INT_MAX keeps every chunk aligned.
constexpr std::int64_t largest_chunk = std::int64_t{1} << 30;

int wanted_level() {
  const char* text = std::getenv("MEDLEY_MPI_THREADS");
  const std::string_view wish = text ? text : "";
  if (wish.empty() || wish == "serialized") return MPI_THREAD_SERIALIZED;
  if (wish == "multiple") return MPI_THREAD_MULTIPLE;
  throw Error(ErrorKind::invalid, fmt::format("MEDLEY_MPI_THREADS=\"{}\" is neither serialized nor multiple", wish));
}

std::int64_t chunk_of_environment() {
  const char* text = std::getenv("MEDLEY_MPI_CHUNK");
  const long long wish = text ? std::atoll(text) : 0;
  return wish > 0 ? std::min<std::int64_t>(wish, largest_chunk) : largest_chunk;
}

/// Open MPI's components are not linked to its library and expect its symbols to be global.
void make_global() {
  Dl_info library{};
  if (dladdr(reinterpret_cast<const void*>(&MPI_Init_thread), &library) != 0 && library.dli_fname)
    dlopen(library.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
}

/// MPI's nonblocking collectives allocate a buffer for each call. glibc gives what is freed at the end of its heap back to
/// the kernel, beyond some 256 KiB, and the next call faults its pages in again: four all_reduce of 128 KiB at once took
/// 280 µs instead of 87. Freeing one large block raises that limit and the one of mmap, as any program does that frees
/// such a block, unless the user has set them.
void raise_malloc_limits() {
  void* volatile block = std::malloc(std::size_t{31} << 20);  // volatile: not to be optimised away
  std::free(block);
}

}  // namespace

Library::Library() : chunk_(chunk_of_environment()) {}

Library& Library::of_process() {
  static auto* const library = new Library;
  return *library;
}

std::string Library::version() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING + 1> text{};
  int length = 0;
  if (MPI_Get_library_version(text.data(), &length) != MPI_SUCCESS) return "unknown";
  // "Open MPI v4.1.4, package: …" and "MPICH Version:\t4.0.2\nMPICH Release date: …"
  std::string line(text.data());
  line = line.substr(0, line.find_first_of(",\n"));
  for (const char* filler : {"Version:", "\t"}) {
    if (const std::size_t at = line.find(filler); at != line.npos) line.erase(at, std::string_view(filler).size());
  }
  if (const std::size_t v = line.find(" v"); v != line.npos) line.erase(v + 1, 1);
  return line;
}

void Library::start() {
  const std::lock_guard once(starting_);
  if (started_) return require_usable();
  int initialised = 0, level = MPI_THREAD_SINGLE;
  check(MPI_Initialized(&initialised), "MPI_Initialized");
  if (initialised) {
    check(MPI_Query_thread(&level), "MPI_Query_thread");
    // Errors of a request go to this communicator's handler in MPI 4. The application keeps that of
    // MPI_COMM_WORLD.
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  } else {
    make_global();
    check(MPI_Init_thread(nullptr, nullptr, wanted_level(), &level), "MPI_Init_thread");
    ours_ = true;
    // Ours to set; an application keeps the handlers of its own communicators.
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    on_exit([](int status, void*) { Library::of_process().end(status); }, nullptr);
  }
  started_ = true;
  raise_malloc_limits();
  survive_dead_peers();
  one_thread_only_ = level < MPI_THREAD_SERIALIZED;
  require_usable();
  int* largest = nullptr;
  int known = 0;
  check(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &largest, &known), "MPI_Comm_get_attr");
  if (known && largest) largest_tag_ = *largest;
}

bool Library::wrong_thread() const {
  if (!one_thread_only_) return false;
  int right = 0;
  return MPI_Is_thread_main(&right) != MPI_SUCCESS || !right;
}

bool Library::usable() const {
  int finalised = 0;
  return started_ && fork_guard_.here() && MPI_Finalized(&finalised) == MPI_SUCCESS && !finalised;
}

void Library::require_usable() const {
  if (const int lost = lost_rank(); lost >= 0) {
    throw Error(ErrorKind::rank_lost, fmt::format("MPI is of no more use in this process since rank {} of "
                                                  "MPI_COMM_WORLD was lost",
                                                  lost));
  }
  if (!of_use()) {
    throw Error(
        ErrorKind::timeout,
        "MPI is of no more use in this process: ranks with which it made a comm did not come before the deadline");
  }
  if (ours_ && fork_guard_.here()) return;  // we finalise it at the end of the process
  if (!usable()) throw Error(ErrorKind::unavailable, "the application has finalised MPI");
}

void Library::lose(int mpi_rank) noexcept {
  int none = -1;
  lost_rank_.compare_exchange_strong(none, mpi_rank);
}

void Library::adopt(Orphan orphan) {
  drop_completed_orphans();
  orphans_.push_back(std::move(orphan));
}

void Library::drop_completed_orphans() noexcept {
  if (orphans_.empty() || !callable()) return;
  std::erase_if(orphans_, [](Orphan& old) {
    // One by one: after an error MPI_Testall does not say which requests are complete, and their memory must stay.
    std::erase_if(old.requests, [](MPI_Request& request) {
      int done = 0;
      return MPI_Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done;
    });
    return old.requests.empty();
  });
}

void Library::defer_free(const Communicators& comms) noexcept {
  reclaim();
  DeferredFree deferred{comms, MPI_REQUEST_NULL};
  if (MPI_Ibarrier(comms.internal, &deferred.everyone) == MPI_SUCCESS) deferred_.push_back(deferred);
}

void Library::reclaim() noexcept {
  drop_completed_orphans();
  std::erase_if(deferred_, [](DeferredFree& deferred) {
    int all = 0;
    if (MPI_Test(&deferred.everyone, &all, MPI_STATUS_IGNORE) != MPI_SUCCESS || !all) return false;
    MPI_Comm_free(&deferred.comms.users);
    MPI_Comm_free(&deferred.comms.internal);
    return true;
  });
}

}  // namespace medley::mpi
