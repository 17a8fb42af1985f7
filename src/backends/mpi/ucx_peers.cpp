#include "backends/mpi/ucx_peers.hpp"

#include <dlfcn.h>

#include <array>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "backends/mpi/library.hpp"

namespace medley::mpi {
namespace {

// As UCX 1.10 and later declare them (ucs/debug/log_def.h): this body is linked with MPI only.
using LogHandler = int (*)(const char* file, unsigned line, const char* function, int level, const void* component,
                           const char* format, va_list arguments);
using PushHandler = void (*)(LogHandler);
using GetVersion = void (*)(unsigned* major, unsigned* minor, unsigned* patch);
constexpr int fatal = 0, stop = 0, go_on = 1;

/// UCX aborts in its own handler of fatal messages, which comes after this one.
/// "process_vm_readv(pid=15073 {…}-->{…}) returned -1: No such process"
int on_message(const char*, unsigned, const char*, int level, const void*, const char* format,
               va_list arguments) noexcept {
  if (level != fatal) return go_on;
  std::array<char, 1024> text{};
  va_list copy;
  va_copy(copy, arguments);  // the next handler reads them too
  std::vsnprintf(text.data(), text.size(), format, copy);
  va_end(copy);
  int process = 0;
  if (std::sscanf(text.data(), "process_vm_%*[a-z](pid=%d", &process) != 1) return go_on;
  const std::string_view said(text.data());
  if (said.ends_with(std::strerror(ESRCH))) return Library::of_process().lose_process(process) ? stop : go_on;
  return said.ends_with(std::strerror(EFAULT)) ? stop : go_on;
}

bool handlers_have_this_form() {
  void* const ucp = dlopen("libucp.so.0", RTLD_NOW | RTLD_NOLOAD);
  if (!ucp) return false;
  const auto version = reinterpret_cast<GetVersion>(dlsym(ucp, "ucp_get_version"));
  unsigned major = 0, minor = 0, patch = 0;
  if (version) version(&major, &minor, &patch);
  dlclose(ucp);
  return major == 1 && minor >= 10;
}

}  // namespace

void survive_dead_peers() {
  if (!handlers_have_this_form()) return;
  void* const ucs = dlopen("libucs.so.0", RTLD_NOW | RTLD_NOLOAD);  // never closed: the handler is there until the end
  const auto push = ucs ? reinterpret_cast<PushHandler>(dlsym(ucs, "ucs_log_push_handler")) : nullptr;
  if (push) push(on_message);
}

}  // namespace medley::mpi
