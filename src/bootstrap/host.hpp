// What a process may share with its neighbours: the identity of its host and the cores it may use.
// Used by Context to find ranks that can share memory and by the shm backend to decide whether to spin.
#pragma once

#include <medley/export.hpp>

#include <string>
#include <vector>

namespace medley {

/// Equal for all that runs on one kernel, containers included, since it started.
MEDLEY_API std::string kernel_identity();
/// Equal for two processes exactly when they can share memory through /dev/shm, read each other with
/// process_vm_readv and watch each other with a pidfd. Opaque; compare it, and hand it around with
/// exchange().
MEDLEY_API std::string host_identity();

/// The name a person knows this host by.
MEDLEY_API std::string host_name();

/// How many cores this process may keep busy: the smaller of its affinity mask and its cgroups' quotas (v1
/// and v2), at least 1. Rounded down, since a rank that spins on a part of a core is throttled.
MEDLEY_API int usable_cores();

/// Which cores this process may run on, as text to hand around.
MEDLEY_API std::string core_mask();

/// How many cores ranks with these masks may keep busy together: a launcher may bind each to one core, so no
/// rank's own mask tells whether they outnumber their cores.
MEDLEY_API int cores_together(const std::vector<std::string>& masks);

/// How many of them the ranks of this host may keep busy where other hosts, such as containers, share its machine: their part of
/// all cores by their number. `here` are masks of its own ranks, `machine` of all ranks on the machine.
MEDLEY_API int share_of_cores(const std::vector<std::string>& here, const std::vector<std::string>& machine);

/// usable_cores() with the cgroup tree and the process's own cgroup file read from other places; for tests.
MEDLEY_API int usable_cores(int affinity, const std::string& own_cgroups_file,
                            const std::string& cgroup_root);

}  // namespace medley
