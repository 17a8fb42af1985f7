// What a process can share with others: the identity of its host and the cores it may use.
// Used by Context to find ranks that can share memory and by the shm backend to decide whether to spin.
#pragma once

#include <medley/export.hpp>

#include <string>
#include <vector>

namespace medley {

/// Equal for all processes on one boot of one kernel, containers included.
MEDLEY_API std::string kernel_identity();
/// Equal for two processes exactly when they can share memory through /dev/shm, read each other with
/// process_vm_readv and watch each other with a pidfd. Opaque; compare it, and distribute it with
/// exchange().
MEDLEY_API std::string host_identity();

/// This host's name, for messages.
MEDLEY_API std::string host_name();

/// How many cores this process may keep busy: the smaller of its affinity mask and its cgroups' quotas (v1
/// and v2), at least 1. Rounded down, since a rank that spins on a part of a core is throttled.
MEDLEY_API int usable_cores();

/// The cores this process may run on, as text to exchange.
MEDLEY_API std::string core_mask();

/// How many cores ranks with these masks may keep busy together: a launcher may bind each to one core, so no
/// single rank's mask shows whether the cores are oversubscribed.
MEDLEY_API int cores_together(const std::vector<std::string>& masks);

/// The same for the ranks of this host where other hosts, such as containers, share its machine: all cores, divided in
/// proportion to the ranks. `here` are the masks of its own ranks, `machine` those of all ranks on the machine.
MEDLEY_API int share_of_cores(const std::vector<std::string>& here, const std::vector<std::string>& machine);

/// usable_cores() with the cgroup tree and the process's own cgroup file read from elsewhere; for tests.
MEDLEY_API int usable_cores(int affinity, const std::string& own_cgroups_file, const std::string& cgroup_root);

}  // namespace medley
