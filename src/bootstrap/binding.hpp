// Binds ranks to cores, and keeps the threads that Medley starts in a rank off that core where others are
// free. Used by the launcher, by `medley bench` and `tune`, and wherever a thread is started.
#pragma once

#include <medley/export.hpp>
#include <medley/sdk/launcher_cores.hpp>

#include <string>
#include <vector>

namespace medley {

/// The cores of `mask` (the text of core_mask()) in the order in which ranks take them: one hardware thread
/// of every core first, then the second ones. `topology` is for tests.
MEDLEY_API std::vector<int> binding_order(const std::string& mask,
                                          const std::string& topology = "/sys/devices/system/cpu");

/// The mask of one core.
MEDLEY_API std::string one_core(int core);

/// For each of `ranks` local ranks the mask of a core of its own. Empty when the ranks outnumber the cores
/// that this process may keep busy.
MEDLEY_API std::vector<std::string> cores_for(int ranks);

/// Lets the calling thread, and the threads and processes that it starts from now on, run on these cores
/// only. Makes system calls only, so that a forked child may call it. False when the system refuses.
MEDLEY_API bool run_on(const std::string& mask) noexcept;

}  // namespace medley
